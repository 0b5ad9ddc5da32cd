"""Whether wake-ups are given: `POINTSMAN_HINTS`, on by default.

Every wake-up is an accelerator of a scan that happens anyway. Switched off, the scans alone carry the work: slower, and
otherwise the same. That is how it is proved that nothing hangs on a hint.
"""

from collections.abc import Mapping

VARIABLE = "POINTSMAN_HINTS"


def hints_on(env: Mapping[str, str]) -> bool:
    """False for `off`. ValueError for anything but `on`, `off` and nothing."""
    said = env.get(VARIABLE, "").strip()
    if said not in ("", "on", "off"):
        raise ValueError(f"{VARIABLE} is {said!r}; say on or off")
    return said != "off"
