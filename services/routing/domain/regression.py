"""Regression sets: small requests with checks on what comes back (CAT-7). Pure.

A Supply's own set stands in the catalogue (`regression`); where it has none, one is made from its kind and what it says
it can do: the least that it takes, and once more with a picture where it takes pictures.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from libs.materials.limits import Measures
from services.routing.domain.catalog import Kind, Spec, Supply

PICTURE, SIGN = "picture", "sign"
"""In an input of a set: `{"artifact": "picture"}` is a plain picture of ours, `sign` one with words on it."""
WRITTEN = "POINTSMAN 42"
"""What stands on the sign."""
WORDS = "A red kite over a quiet harbour at noon."
SAID = "All is well."
FAMILIES: Mapping[Kind, str] = {Kind.VIDEO: "video", Kind.IMAGE: "image", Kind.SPEECH: "audio"}
"""The kinds that give files, and of which family."""
ANSWERED = frozenset({Kind.CHAT, Kind.EMBEDDING, Kind.OCR})
"""The kinds that answer in words or numbers while the caller waits."""
RATIO_SLACK, SIDE_SLACK, SECONDS_SLACK = 0.03, 0.02, 0.6
USUAL_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Case:
    """One request and what has to come of it.

    `expect`, all optional: `family`, `artifacts` (at least so many), `width`, `height` (pixels), `ratio` (`16:9`),
    `duration_s` (`{min, max}`), `min_bytes`; whatever is said holds for every file. Of answers: `contains` (words, in
    whatever case), `min_characters`, `vectors` (their number), `dimensions`.
    """

    name: str
    input: Mapping[str, Any]
    expect: Mapping[str, Any] = field(default_factory=dict)


def set_of(supply: Supply, own: Sequence[Spec]) -> tuple[Case, ...]:
    """The Supply's own set as declared, or the usual one of its kind."""
    if own:
        return tuple(Case(str(item["name"]), item["input"], item.get("expect") or {}) for item in own)
    if supply.kind in ANSWERED:
        return (_usual_answer(supply),)
    family = FAMILIES[supply.kind]
    return tuple(
        Case(name, given, {"family": family, "artifacts": 1, **_expected(supply.kind, given)})
        for name, given in _usual(supply)
    )


def _usual_answer(supply: Supply) -> Case:
    said = supply.capabilities
    if supply.kind is Kind.CHAT:
        asked = {"role": "user", "content": "Answer in one word: what colour is a clear sky at noon?"}
        return Case("words", {"messages": [asked]}, {"min_characters": 1})
    if supply.kind is Kind.OCR:
        given = {"image": {"artifact": SIGN}, **_first(said, "tasks", "task")}
        return Case("sign", given, {"contains": WRITTEN.split()[1]})
    texts = [WORDS, SAID][: said.get("max_batch") or 2]
    sizes = said.get("dimensions")
    size = sizes[0] if isinstance(sizes, list | tuple) and sizes else sizes
    if isinstance(size, int):
        return Case("texts", {"input": texts, "dimensions": size}, {"vectors": len(texts), "dimensions": size})
    return Case("texts", {"input": texts}, {"vectors": len(texts)})


def _usual(supply: Supply) -> Iterator[tuple[str, dict[str, Any]]]:
    said = supply.capabilities
    if supply.kind is Kind.SPEECH:
        spoken = _first(said, "voices", "voice") | _first(said, "formats", "format")
        yield "words", {"text": SAID[: said.get("max_characters") or len(SAID)], **spoken}
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


def answer_shortcomings(kind: Kind, expect: Mapping[str, Any], output: Mapping[str, Any]) -> list[str]:
    """What an answer lacks, read in the normalised shape of its kind; nothing = it is as expected."""
    if kind is Kind.EMBEDDING:
        return list(_of_vectors(expect, output))
    words = output.get("text") if kind is Kind.OCR else _said(output)
    text = words if isinstance(words, str) else ""
    least, wanted = int(expect.get("min_characters", 1)), str(expect.get("contains", ""))
    found = [f"has {len(text.strip())} characters, at least {least} are wanted"] if len(text.strip()) < least else []
    if wanted.casefold() not in text.casefold():
        found.append(f"does not say {wanted!r}")
    return found


def _said(output: Mapping[str, Any]) -> Any:
    choices = output.get("choices") or [{}]
    return (choices[0].get("message") or {}).get("content")


def _of_vectors(expect: Mapping[str, Any], output: Mapping[str, Any]) -> Iterator[str]:
    vectors = [item.get("embedding") for item in output.get("data") or ()]
    wanted = int(expect.get("vectors", 1))
    if len(vectors) != wanted:
        yield f"gave {len(vectors)} vectors, {wanted} are wanted"
    sizes = {len(vector) if isinstance(vector, list | tuple) else 0 for vector in vectors}
    if len(sizes) > 1 or 0 in sizes:
        yield f"gave vectors of {', '.join(map(str, sorted(sizes)))} numbers"
    elif expect.get("dimensions") and sizes - {expect["dimensions"]}:
        yield f"gave vectors of {sizes.pop()} numbers, not {expect['dimensions']}"
