"""What a request for a film of clips may hold, and what it needs of a supply."""

from typing import Any

import pytest

from services.routing.domain.capability import misfits
from services.routing.domain.catalog import Kind
from services.routing.domain.input_shape import complaints
from services.routing.domain.request_facts import facts_of, normalised

CLIP = {"artifact": "a" * 64}
CLIPS = [CLIP, CLIP, CLIP]
LINES = [{"start_s": 0, "end_s": 1.5, "text": "Here."}, {"start_s": 1.5, "end_s": 3, "text": "There."}]


@pytest.mark.parametrize(
    "given",
    [
        {"clips": CLIPS},
        {"clips": CLIPS, "narration": [CLIP, None, CLIP], "subtitles": ["One.", "", "Three."]},
        {"clips": CLIPS, "narration": [CLIP], "subtitles": LINES, "real_person": True},
        {"clips": [CLIP], "narration": [], "subtitles": []},
    ],
)
def test_a_film_needs_its_clips_alone(given: dict[str, Any]) -> None:
    """EDG-3: no prompt and no length are asked for; voices and lines go by clip or over the whole."""
    assert complaints(Kind.VIDEO, given) == []
    assert "duration_s" not in normalised(Kind.VIDEO, {"duration_s": {"min": 4, "max": 15}}, given)


@pytest.mark.parametrize(
    "given, pointers",
    [
        ({"clips": CLIPS, "prompt": "a storm"}, ["/input/prompt"]),
        ({"clips": CLIPS, "duration_s": 4, "first_frame": CLIP}, ["/input/duration_s", "/input/first_frame"]),
        ({"narration": [CLIP]}, ["/input/narration"]),
        ({"prompt": "x", "subtitles": ["One."]}, ["/input/subtitles"]),
        ({"clips": CLIPS, "narration": [CLIP, CLIP]}, ["/input/narration"]),
        ({"clips": CLIPS, "subtitles": ["One.", "Two."]}, ["/input/subtitles"]),
        ({"clips": [CLIP, None]}, ["/input/clips/1"]),
        ({"clips": CLIPS, "narration": [CLIP, {}, None]}, ["/input/narration/1"]),
        ({"clips": CLIPS, "subtitles": "One."}, ["/input/subtitles"]),
        ({"clips": CLIPS, "subtitles": ["One.", 2, "Three."]}, ["/input/subtitles/1"]),
        ({"clips": CLIPS, "subtitles": [LINES[1], LINES[0]]}, ["/input/subtitles/1/start_s"]),
        ({"clips": CLIPS, "subtitles": [{**LINES[1], "end_s": 1.5}]}, ["/input/subtitles/0/end_s"]),
        ({"clips": CLIPS, "subtitles": [{"start_s": True, "text": " "}]},
         ["/input/subtitles/0/end_s", "/input/subtitles/0/start_s", "/input/subtitles/0/text"]),
        ({"clips": CLIPS, "subtitles": [{**LINES[0], "colour": "red"}, "Two."]},
         ["/input/subtitles/0/colour", "/input/subtitles/1"]),
    ],
)  # fmt: skip
def test_what_does_not_go_with_a_film_is_named(given: dict[str, Any], pointers: list[str]) -> None:
    """EDG-3: nothing is left out in silence: each part that cannot be used is refused by its place."""
    assert sorted(pointer for pointer, _ in complaints(Kind.VIDEO, given)) == pointers


def test_a_supply_is_asked_for_what_the_film_has() -> None:
    """SEL-2: clips and voices are counted as materials are, and lines are a feature."""
    given = {"clips": CLIPS, "narration": [CLIP], "subtitles": ["One.", "", ""]}
    facts = facts_of(Kind.VIDEO, given)
    assert misfits({"inputs": {"clips": 3, "narration": 1}, "features": ["subtitles"]}, facts) == []
    told = [item.figures for item in misfits({"inputs": {"clips": 2}, "features": []}, facts)]
    assert told == [
        "needs 3 clips, admits 2",
        "needs 1 narrations, admits 0",
        "needs feature subtitles, admits none",
    ]
    assert misfits({"inputs": {"reference_images": 9}}, facts)


def test_who_joins_films_is_not_asked_to_draw() -> None:
    """SEL-2: a supply that declares clips and no reference makes films alone; one that declares both does either."""
    facts = facts_of(Kind.VIDEO, {"prompt": "a storm", "duration_s": 4})
    [told] = misfits({"inputs": {"clips": 64, "narration": 64}}, facts)
    assert (told.field, told.figures) == ("clips", "needs a clip that is drawn, admits clips to be joined alone")
    assert misfits({"inputs": {"clips": 64, "reference_images": 9}}, facts) == []
    assert misfits({"inputs": {"clips": 64}}, facts_of(Kind.VIDEO, {"clips": CLIPS})) == []
