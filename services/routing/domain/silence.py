"""How long a provider's records have been silent about a submission, by a time that no clock can fake. Pure.

Laws of this file:
- the life of the database is counted in pulses: one more by whoever has seen the count stand still for `PULSE_S` of its
  own monotonic clock. So it never rises faster than time passes, whatever wall clocks do and however many count; when
  nobody counts it stands still;
- the first pulse after a moment may have begun before it: it proves nothing of the time since;
- what is not known to have lasted has not lasted.
"""

PULSE_S = 1.0


def began(pulse: int, ago_s: float) -> int:
    """The pulse from which a silence counts that had lasted `ago_s` by one process's monotonic clock at `pulse`."""
    return pulse - int(ago_s // PULSE_S)


def lasted_s(since: int | None, pulse: int) -> float:
    """Seconds that have passed at least. `since` None: nobody has begun to count."""
    return 0.0 if since is None else max(pulse - since - 1, 0) * PULSE_S
