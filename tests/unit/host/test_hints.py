"""The one setting for wake-ups, as every context reads it."""

import pytest

from libs.host.hints import hints_on


def test_hints_are_on_unless_they_are_switched_off():
    """ATT-9: `off` is the only word that switches them off, and a misprint is told instead of guessed at."""
    assert [hints_on({"POINTSMAN_HINTS": word} if word else {}) for word in ("", "on", "off", " off ")] == [
        True,
        True,
        False,
        False,
    ]
    with pytest.raises(ValueError, match="POINTSMAN_HINTS"):
        hints_on({"POINTSMAN_HINTS": "no"})
