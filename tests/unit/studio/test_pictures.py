"""What is drawn of a prompt, however long it is."""

import pytest

from services.studio.domain.accounts import Style
from services.studio.media.pictures import badge, words_in

STYLE = Style(("#102030", "#4080a0", "#e0f0ff"), "waves")


@pytest.mark.parametrize("letter", ["a", "i", "W", " x", "\u706f"])
def test_a_caption_shows_as_much_of_a_book_as_fits(letter: str) -> None:
    """A prompt of 100,000 characters draws what its first thousand draw, in the time that these take."""
    long, short = badge(1280, "maker", STYLE, letter * 100_000), badge(1280, "maker", STYLE, letter * 1000)
    assert long.tobytes() == short.tobytes()
    assert (long.tobytes() == badge(1280, "maker", STYLE).tobytes()) is (letter > "\u0250")


def test_a_caption_that_fits_is_whole_and_one_without_room_is_left_out() -> None:
    """No mark of what is missing where nothing is, and no lone mark."""
    whole = badge(1280, "maker", STYLE, "A harbour at dawn")
    assert whole.tobytes() != badge(1280, "maker", STYLE, "A harbour at daw").tobytes()
    assert (
        badge(64, "a maker with a long name", STYLE, "words").tobytes()
        == badge(64, "a maker with a long name", STYLE).tobytes()
    )


def test_signs_of_a_book_are_few_and_short() -> None:
    """As many signs as there is room for, each cut."""
    assert words_in('"open" ' * 50_000) == ["open"] * 4
    assert words_in('"' * 100_000) == []
