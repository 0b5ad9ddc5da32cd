"""Whether a file is what was asked for: pure judgement over facts that others measured (GATE-1, RUN-7).

Laws of this file:
- what everything made must pass comes first: it is there, has bytes, decodes, and lasts if it is a clip or a sound;
- a check that cannot be judged is not passed, and its reason says what it lacked;
- a reason tells what was found and what was asked for.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from libs.kernel.money import Money
from services.runs.domain.plan import Check
from services.runs.domain.reading.notation import duration_of, is_number, size_of

SOUND = "sound"
"""The check that everything made must pass: it is there, whole, and decodes."""
SETTLED = frozenset({"hash", "text"})
"""Checks against what was settled before: what fails one contradicts it, where others tell what is not good enough."""
LASTING = ("video/", "audio/")
SHOWN = 60


@dataclass(frozen=True, slots=True)
class Facts:
    """What was measured of one artifact. `unsound` says why it is not there, is damaged or does not decode; "" = it is
    sound. Pixels are 0 for sound and text, seconds 0 for pictures and text.
    """

    sha256: str
    media_type: str = ""
    size_bytes: int = 0
    unsound: str = ""
    width: int = 0
    height: int = 0
    duration_s: float = 0.0
    streams: frozenset[str] = frozenset()
    """Of `video`, `audio`, `subtitle`."""
    fingerprint: str = ""
    """Of a picture: hexadecimal digits that differ in few bits where two pictures look alike."""
    words: Mapping[str, str] = field(default_factory=dict)
    """By model: the text that it read."""
    spent: tuple[Money, ...] = ()
    """What reading cost this time."""


def verified(facts: Facts) -> str | None:
    """Why an artifact must not count as made, or None (RUN-7)."""
    if facts.unsound:
        return facts.unsound
    if facts.size_bytes <= 0:
        return "is empty"
    if facts.media_type.startswith(LASTING) and facts.duration_s <= 0:
        return "has no duration"
    return None


def judge(check: Check, facts: Facts, others: Mapping[str, Facts] | None = None) -> str | None:
    """Why a sound artifact fails a check whose argument is resolved, or None. `others`: facts by digest of what it is
    compared with (`compared`)."""
    judgement = _JUDGEMENTS.get(check.name)
    if judgement is None:
        return f"cannot be judged by {check.name!r}, which is no check that is known"
    return judgement(check.argument, facts, others or {})


def readers(checks: Iterable[Check]) -> frozenset[str]:
    """The models that must read text before these checks can be judged."""
    named = (check.argument for check in checks if check.name == "text" and isinstance(check.argument, Mapping))
    return frozenset(str(argument["model"]) for argument in named if argument.get("model"))


def compared(checks: Iterable[Check]) -> tuple[str, ...]:
    """The digests of what these checks, resolved, compare with; each once."""
    found = (_digests(check.argument) for check in checks if check.name == "similar_to")
    return tuple(dict.fromkeys(digest for digests in found for digest in digests))


def _decodes(argument: Any, facts: Facts, others: Mapping[str, Facts]) -> str | None:
    return verified(facts)


def _min_size(argument: Any, facts: Facts, others: Mapping[str, Facts]) -> str | None:
    size = size_of(argument)
    if size is None:
        return f"cannot be judged by min_size {_short(argument)}, which is no WIDTHxHEIGHT"
    if facts.width >= size[0] and facts.height >= size[1]:
        return None
    return f"has {_pixels(facts)}; at least {argument} is asked for"


def _max_size(argument: Any, facts: Facts, others: Mapping[str, Facts]) -> str | None:
    size = size_of(argument)
    if size is None:
        return f"cannot be judged by max_size {_short(argument)}, which is no WIDTHxHEIGHT"
    if facts.width and facts.width <= size[0] and facts.height <= size[1]:
        return None
    return f"has {_pixels(facts)}; at most {argument} is asked for"


def _duration(argument: Any, facts: Facts, others: Mapping[str, Facts]) -> str | None:
    asked = argument if isinstance(argument, Mapping) else {}
    if "seconds" in asked:
        length = duration_of(asked["seconds"])
        if length is None:
            return f"cannot be judged by duration {_short(asked['seconds'])}, which is none"
        least, most = length.total_seconds() - asked["tolerance_s"], length.total_seconds() + asked["tolerance_s"]
    else:
        least, most = asked.get("min_s"), asked.get("max_s")
    if not facts.duration_s:
        return "has no duration"
    if is_number(least) and facts.duration_s < least:
        return f"lasts {facts.duration_s:.2f} s; at least {least:g} s are asked for"
    if is_number(most) and facts.duration_s > most:
        return f"lasts {facts.duration_s:.2f} s; at most {most:g} s are asked for"
    return None


def _hash(argument: Any, facts: Facts, others: Mapping[str, Facts]) -> str | None:
    return None if facts.sha256 == argument else f"has the digest {facts.sha256}; {_short(argument)} is asked for"


def _similar(argument: Any, facts: Facts, others: Mapping[str, Facts]) -> str | None:
    digests = _digests(argument)
    if not digests:
        return "cannot be compared: similar_to gives no file"
    if not facts.fingerprint:
        return "cannot be compared: similar_to looks at pictures"
    seen = [others[digest].fingerprint for digest in digests if digest in others and others[digest].fingerprint]
    if not seen:
        return f"cannot be compared: {digests[0][:12]} is no picture that can be read"
    likeness = max(alike(facts.fingerprint, other) for other in seen)
    threshold = argument.get("threshold", 1.0) if isinstance(argument, Mapping) else 1.0
    return None if likeness >= threshold else f"is {likeness:.2f} like its reference; {threshold:g} is asked for"


def _text(argument: Any, facts: Facts, others: Mapping[str, Facts]) -> str | None:
    asked = argument if isinstance(argument, Mapping) else {}
    wanted, model = _folded(asked.get("contains")), str(asked.get("model", ""))
    if not wanted:
        return "cannot be judged by text: there are no words to look for"
    if model not in facts.words:
        return f"cannot be read by {model!r}: text is looked for in pictures"
    read = _folded(facts.words[model])
    return None if wanted in read else f"reads {_short(read) if read else 'nothing'}; {_short(wanted)} is asked for"


def _streams(argument: Any, facts: Facts, others: Mapping[str, Facts]) -> str | None:
    lacking = [str(stream) for stream in argument or () if stream not in facts.streams]
    held = ", ".join(sorted(facts.streams)) or "no streams"
    return f"holds {held}; {', '.join(lacking)} is asked for" if lacking else None


def alike(one: str, other: str) -> float:
    """How alike two fingerprints are: 1 the same, about 0.5 no more than by chance."""
    if len(one) != len(other) or not one:
        return 0.0
    return 1.0 - (int(one, 16) ^ int(other, 16)).bit_count() / (len(one) * 4)


def _digests(argument: Any) -> list[str]:
    reference = argument.get("reference") if isinstance(argument, Mapping) else None
    named = reference if isinstance(reference, (list, tuple)) else [reference]
    return [str(each["artifact"]) for each in named if isinstance(each, Mapping) and each.get("artifact")]


def _pixels(facts: Facts) -> str:
    return f"{facts.width}x{facts.height} pixels" if facts.width else "no pixels"


def _folded(text: Any) -> str:
    """Without what reading gets wrong or prints otherwise: upper case, line breaks, runs of blanks."""
    return " ".join(str(text or "").casefold().split())


def _short(value: Any) -> str:
    text = str(value)
    return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}…")


_JUDGEMENTS = {
    "decodes": _decodes,
    "min_size": _min_size,
    "max_size": _max_size,
    "duration": _duration,
    "hash": _hash,
    "similar_to": _similar,
    "text": _text,
    "streams": _streams,
}
