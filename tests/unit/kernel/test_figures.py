"""Numbers as people write them."""

import pytest

from libs.kernel.figures import plain


@pytest.mark.parametrize(
    ("number", "text"),
    [(10_000_000, "10000000"), (7776000.0, "7776000"), (0.25, "0.25"), (3.94588, "3.94588"), (1e-5, "0.00001"),
     (2_000_000.5, "2000000.5"), (0.1, "0.1"), (-3, "-3")],
)  # fmt: skip
def test_no_number_is_told_with_an_exponent(number: float, text: str) -> None:
    """EDG-1: a limit is told as somebody would send it."""
    assert plain(number) == text
