"""What no store keeps, wherever it lies in an input."""

import pytest

from services.routing.domain.catalog import Kind
from services.routing.domain.input_shape import complaints


@pytest.mark.parametrize(
    "given",
    [
        {"prompt": "a\0b"},
        {"a\0": 1},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "\0"}]}]},
        {"temperature": float("nan")},
        {"bias": {"x": [1.0, float("inf")]}},
    ],
)
def test_what_cannot_be_kept_is_found_however_deep_it_lies(given: dict[str, object]) -> None:
    """EDG-3: a NUL character and what is no number are complained of at any depth, in a list and in a name."""
    assert [reason for _, reason in complaints(Kind.CHAT, given) if "NUL" in reason or "finite" in reason]
