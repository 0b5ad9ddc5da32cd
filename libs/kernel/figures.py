"""Numbers and times as people write them."""

from datetime import UTC, datetime


def plain(number: float) -> str:
    """`10000000` and `0.25`: never with an exponent; fractions to six figures, or to the ninth place."""
    if float(number).is_integer():
        return f"{number:.0f}"
    return f"{number:.6g}" if 1e-4 <= abs(number) < 1e6 else f"{number:.9f}".rstrip("0").rstrip(".")


def moment(at: datetime) -> str:
    """A time to the second, as people of any zone read it: `2026-12-01T03:07:53Z`."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
