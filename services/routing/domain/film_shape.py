"""The shape of a film that is made of clips: what goes with `clips`, and how subtitles are told.

Laws of this file:
- a film is its clips: what would be drawn anew (words, frames, references, a length) is refused beside them, never
  silently left out;
- a voice or a line belongs to the clip of its place in the list; a single voice, and lines with times, to the whole.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

Complaint = tuple[str, str]
"""(JSON pointer, reason)"""

FILM_FIELDS = ("clips", "narration", "subtitles")
BESIDE_CLIPS = frozenset({*FILM_FIELDS, "real_person"})
LONGEST_LINE = 1000
LATEST_S = 86_400.0
SPAN = ("start_s", "end_s", "text")


def film_complaints(given: Mapping[str, Any]) -> Iterator[Complaint]:
    """What does not go together."""
    clips = given.get("clips")
    if not clips:
        for name in FILM_FIELDS[1:]:
            if given.get(name):
                yield f"/input/{name}", "goes with clips alone; name the clips that it belongs to"
        return
    for name, value in given.items():
        if name not in BESIDE_CLIPS and value not in (None, [], ()):
            yield f"/input/{name}", "does not go with clips: a film of clips is what they are, as long as they are"
    count = len(clips) if isinstance(clips, (list, tuple)) else 0
    voices, lines = given.get("narration"), given.get("subtitles")
    if isinstance(voices, (list, tuple)) and len(voices) not in (0, 1, count):
        yield "/input/narration", f"must hold one for the whole film, or one for each clip ({count}), null for none"
    if isinstance(lines, (list, tuple)) and _of_clips(lines) and len(lines) not in (0, count):
        yield "/input/subtitles", f'must hold one text for each clip ({count}), "" for none, or lines with times'


def subtitles(pointer: str, value: Any) -> Iterator[Complaint]:
    """Texts, one a clip; or lines of {start_s, end_s, text} in the order of their times."""
    if not isinstance(value, (list, tuple)):
        yield pointer, "must be a list of texts, one for each clip, or of {start_s, end_s, text}"
        return
    if _of_clips(value):
        for index, item in enumerate(value):
            yield from _text(f"{pointer}/{index}", item)
        return
    ended = 0.0
    for index, item in enumerate(value):
        place = f"{pointer}/{index}"
        if not isinstance(item, Mapping):
            yield place, "must be {start_s, end_s, text} as the others are"
            continue
        wrong = list(_line(place, item, ended))
        yield from wrong
        ended = ended if wrong else item["end_s"]


def _of_clips(lines: Sequence[Any]) -> bool:
    return not any(isinstance(item, Mapping) for item in lines)


def _line(pointer: str, item: Mapping[str, Any], ended: float) -> Iterator[Complaint]:
    for name in item:
        if name not in SPAN:
            escaped = str(name).replace("~", "~0").replace("/", "~1")
            yield f"{pointer}/{escaped}", f"is not a field; a line has {', '.join(SPAN)}"
    yield from _text(f"{pointer}/text", item.get("text"), least=1)
    untimed = [name for name in ("start_s", "end_s") if not _is_time(item.get(name))]
    if untimed:
        yield from (
            (f"{pointer}/{name}", "must be a number of seconds of the film, 0 its beginning") for name in untimed
        )
        return
    start, end = item["start_s"], item["end_s"]
    if end <= start:
        yield f"{pointer}/end_s", "must be after start_s"
    if start < ended:
        yield f"{pointer}/start_s", f"must not be before {ended:g}, where the line before it ends"


def _text(pointer: str, value: Any, least: int = 0) -> Iterator[Complaint]:
    if not isinstance(value, str) or not least <= len(value.strip()) <= LONGEST_LINE:
        at_least = "not empty, " if least else ""
        yield pointer, f"must be a text, {at_least}of at most {LONGEST_LINE} characters"


def _is_time(value: Any) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and isfinite(value) and 0 <= value <= LATEST_S
