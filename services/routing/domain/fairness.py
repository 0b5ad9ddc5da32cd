"""Whose turn it is: lines share what there is by weight, never by level, and none of them starves (ATT-9, CAP-11).

Who is looked at first is told here, whose the places at Supplies are in `shares`.

Start-time fair queueing over lines. A line is one tenant's Tasks of one model in one class of urgency. Each Task has a
charge, its expected size divided by the weight of its class; its tag is where its line stands in virtual time, and the
line moves on by the charge. The Task with the smallest tag goes next, and virtual time is the tag that went last. A
line that had nothing to do earns no credit: it goes on from the present.

The bound: while a line has something due, between two of its turns any other line is charged at most what this one was
charged for one turn, and one Task more. So a `low` Task at the head of its line is passed, by any one line of Tasks of
its size, by at most 5 `high` or 3 `normal` ones, however many of those arrive; several processes add what each had
claimed at once. A Task that waits keeps its tag, so that it goes first when it is woken, and it is not in the way of
others meanwhile: nobody stands behind it.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from services.routing.domain.request import Request

WEIGHTS: Mapping[str, int] = {"high": 4, "normal": 2, "low": 1}
"""By the urgency that a caller may ask for."""
RELEASE = "release"
CLASS_WEIGHTS: Mapping[str, int] = {**WEIGHTS, RELEASE: 8}
"""By class. One more is only given: what a release waits for (PRIO-1)."""
STANDARD_LINES = 720.0
"""Lines of a picture of which 5 s count as one."""
SMALLEST, LARGEST = 0.1, 100.0
SECONDS_OF_VIDEO, CHARACTERS_OF_SPEECH = 5.0, 500.0
"""What counts as one, as much as one picture."""


@dataclass(slots=True)
class Lines:
    """Where the lines stand. PostgreSQL keeps the same in its table `lines`; one contract suite holds both to it."""

    time: float = 0.0
    """Virtual time: the tag that went last."""
    _stand: dict[Hashable, float] = field(default_factory=dict)

    def enter(self, line: Hashable, charged: float) -> float:
        """The tag of one more Task of that line."""
        tag = max(self._stand.get(line, 0.0), self.time)
        self._stand[line] = tag + charged
        return tag

    def serve(self, tag: float) -> None:
        """A Task with that tag goes."""
        self.time = max(self.time, tag)


def passed_at_most(weight_of_other: int, weight: int) -> int:
    """How many Tasks of another line go between two turns of one that has something due, sizes being equal."""
    return -(-weight_of_other // weight) + 1


def size(kind: str, given: Mapping[str, Any]) -> float:
    """About how much time of a device a request takes (PRIO-2), from its normalised input: seconds of video by the area
    of its picture, pictures, characters of speech."""
    if kind == "video":
        amount = _number(given.get("duration_s"), SECONDS_OF_VIDEO) / SECONDS_OF_VIDEO * _sharpness(given)
    elif kind == "image":
        amount = _number(given.get("n"), 1.0)
    elif kind == "speech":
        amount = len(str(given.get("text", ""))) / CHARACTERS_OF_SPEECH
    else:
        amount = 1.0
    return min(max(amount, SMALLEST), LARGEST)


def charge(kind: str, given: Mapping[str, Any], urgency: str) -> float:
    """By how much a Task moves its line on."""
    return size(kind, given) / CLASS_WEIGHTS[urgency]


def class_of(request: Request) -> str:
    """Its class of urgency."""
    return RELEASE if request.terms and request.terms.blocks_release else request.priority


def _sharpness(given: Mapping[str, Any]) -> float:
    """The area of a picture beside one of 720 lines; 1 where nothing, or nothing known, is said."""
    lines = str(given.get("resolution") or "").lower().removesuffix("p")
    known = {"2k": 1440.0, "4k": 2160.0}.get(lines) or (float(lines) if lines.isascii() and lines.isdigit() else 0.0)
    return (known / STANDARD_LINES) ** 2 if known else 1.0


def _number(value: Any, otherwise: float) -> float:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else otherwise
