"""Numbers as people write them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from libs.kernel.figures import moment, plain


@pytest.mark.parametrize(
    ("number", "text"),
    [(10_000_000, "10000000"), (7776000.0, "7776000"), (0.25, "0.25"), (3.94588, "3.94588"), (1e-5, "0.00001"),
     (2_000_000.5, "2000000.5"), (0.1, "0.1"), (-3, "-3")],
)  # fmt: skip
def test_no_number_is_told_with_an_exponent(number: float, text: str) -> None:
    """EDG-1: a limit is told as somebody would send it."""
    assert plain(number) == text


def test_a_time_is_told_to_the_second_in_utc() -> None:
    """OPS-6: whoever reads it in whatever zone, as everything else tells times."""
    there = datetime(2026, 12, 1, 11, 7, 53, 727216, tzinfo=timezone(timedelta(hours=8)))
    assert moment(there) == moment(there.astimezone(UTC)) == "2026-12-01T03:07:53Z"
