"""Regression sets: small requests with checks on what comes back (CAT-7). Pure.

A Supply's own set stands in the catalogue (`regression`); where it has none, one is made from its kind and what it says
it can do: the least that it takes, once by words alone and once with a picture where it takes pictures.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from libs.materials.limits import Measures
from services.routing.domain.catalog import Kind, Spec, Supply

PICTURE = "picture"
"""In an input of a set: `{"artifact": "picture"}` is a plain picture of ours."""
WORDS = "A red kite over a quiet harbour at noon."
SAID = "All is well."
FAMILIES: Mapping[Kind, str] = {Kind.VIDEO: "video", Kind.IMAGE: "image", Kind.SPEECH: "audio"}
"""The kinds that give files, and of which family."""
RATIO_SLACK, SIDE_SLACK, SECONDS_SLACK = 0.03, 0.02, 0.6
USUAL_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Case:
    """One request and what has to come of it.

    `expect`: `family`, `artifacts` (at least so many), `width`, `height` (pixels), `ratio` (`16:9`), `duration_s`
    (`{min, max}`), `min_bytes`. All optional; whatever is said holds for every file.
    """

    name: str
    input: Mapping[str, Any]
    expect: Mapping[str, Any] = field(default_factory=dict)


def set_of(supply: Supply, own: Sequence[Spec]) -> tuple[Case, ...]:
    """The Supply's own set as declared, or the usual one of its kind; () for a kind that gives no files."""
    family = FAMILIES.get(supply.kind)
    if family is None:
        return ()
    if own:
        return tuple(Case(str(item["name"]), item["input"], item.get("expect") or {}) for item in own)
    return tuple(
        Case(name, given, {"family": family, "artifacts": 1, **_expected(supply.kind, given)})
        for name, given in _usual(supply)
    )


def _usual(supply: Supply) -> Iterator[tuple[str, dict[str, Any]]]:
    said = supply.capabilities
    if supply.kind is Kind.SPEECH:
        yield "words", {"text": SAID[: said.get("max_characters") or len(SAID)], **_first(said, "voices", "voice")}
        return
    least: dict[str, Any] = {"prompt": WORDS}
    if supply.kind is Kind.IMAGE:
        least |= _first(said, "sizes", "size")
    else:
        bounds = said.get("duration_s") or {}
        least["duration_s"] = bounds.get("min") or min(USUAL_SECONDS, bounds.get("max", USUAL_SECONDS))
        least |= _first(said, "resolutions", "resolution") | _first(said, "ratios", "ratio")
    yield "words", least
    picture = {"artifact": PICTURE}
    if (said.get("inputs") or {}).get("reference_images"):
        yield "reference_images", {**least, "reference_images": [picture]}
    if supply.kind is Kind.VIDEO and "first_frame" in said.get("features", ()):
        framed = {name: value for name, value in least.items() if name != "ratio"}  # the frame has its own
        yield "first_frame", {**framed, "first_frame": picture}


def _first(said: Mapping[str, Any], listed: str, name: str) -> dict[str, Any]:
    choices = said.get(listed) or ()
    return {name: choices[0]} if choices else {}


def _expected(kind: Kind, given: Mapping[str, Any]) -> dict[str, Any]:
    expected: dict[str, Any] = {"min_bytes": 100}
    sides = str(given.get("size", "")).lower().split("x")
    if kind is Kind.IMAGE and len(sides) == 2 and all(side.isdigit() for side in sides):
        expected |= {"width": int(sides[0]), "height": int(sides[1])}
    if kind is Kind.VIDEO:
        seconds = given["duration_s"]
        expected["duration_s"] = {"min": seconds - SECONDS_SLACK, "max": seconds + 1 + SECONDS_SLACK}
        if ratio_of(given.get("ratio")):
            expected["ratio"] = given["ratio"]
    if kind is Kind.SPEECH:
        expected["duration_s"] = {"min": 0.2, "max": 20}
    return expected


def ratio_of(text: Any) -> float | None:
    """Width over height of `16:9`, None for anything else."""
    parts = str(text).split(":")
    if len(parts) != 2 or not all(part.isdigit() and int(part) for part in parts):
        return None
    return int(parts[0]) / int(parts[1])


def shortcomings(expect: Mapping[str, Any], files: Sequence[Measures]) -> list[str]:
    """What the files of one result lack; nothing = they are as expected."""
    wanted = int(expect.get("artifacts", 1))
    found = [f"gave {len(files)} files, {wanted} are wanted"] if len(files) < wanted else []
    for number, seen in enumerate(files, 1):
        found += [f"file {number} {reason}" for reason in _of_file(expect, seen)]
    return found


def _of_file(expect: Mapping[str, Any], seen: Measures) -> Iterator[str]:
    family = expect.get("family")
    if family and seen.media_type.partition("/")[0] != family:
        yield f"is {seen.media_type}, not {family}"
    if seen.bytes < expect.get("min_bytes", 1):
        yield f"has {seen.bytes} bytes, at least {expect['min_bytes']} are wanted"
    for side, pixels in (("width", seen.width), ("height", seen.height)):
        asked = expect.get(side)
        if asked and abs(pixels - asked) > asked * SIDE_SLACK:
            yield f"has a {side} of {pixels}, not {asked}"
    ratio = ratio_of(expect.get("ratio"))
    if ratio and (not seen.height or abs(seen.width / seen.height - ratio) > ratio * RATIO_SLACK):
        yield f"is {seen.width}x{seen.height}, not {expect['ratio']}"
    bounds = expect.get("duration_s") or {}
    low, high = bounds.get("min", 0.0), bounds.get("max", float("inf"))
    if not low <= seen.duration_s <= high:
        yield f"lasts {seen.duration_s:.2f} s, not {low:g} to {high:g} s"
