"""Whose the next place at a Supply is (PRIO-1, PRIO-2, CAP-11). Pure but for what it has seen of its own process.

Laws of this file:
- models are queues of their own, and in a model each line: one tenant's Tasks in one class of urgency. Each stands
  where its placings have brought it, a model by the time of a device that they reserved, a line by that over the weight
  of its class; whoever stands furthest back goes next: the model first, then the line in it;
- the present is where the one that went last stood. Who had nothing, or nothing that could be placed, earns no credit:
  placed again, it goes on from the present;
- what a release waits for goes before all others of its model; after `IN_A_ROW` such placings in a row one of the
  others goes, if any waits;
- within a line the one that is due first goes first: its deadline, else the end of a wait of `PATIENCE_S`; what has
  come far in its production, and what others wait for, is due earlier, by a bounded time.

The bounds, sizes being equal, while something of a line waits that could be placed: between two of its turns any other
line of its model, the release's apart, goes at most `passed_at_most` times, however much of it there is; with each turn
of those others, and once before, go at most `IN_A_ROW` of the release's; any other model gets at most two places for
each one of its own model. In its own line a Task is passed by none that came later than `FURTHEST_S` after it.

This is where the arrival order of `fairness` does not reach: with all places taken a backlog is looked at long before
it is placed, and who comes then must not stand behind all of it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

from services.routing.domain.fairness import CLASS_WEIGHTS, RELEASE, class_of, size
from services.routing.domain.request import NO_TERMS
from services.routing.domain.task import Task

Line = tuple[str, str, str]
"""(tenant, model, class)."""
Key = TypeVar("Key", str, Line)
Part = tuple[str, bool]
"""(model, whether it is the release's part)."""
IN_A_ROW = 4
PATIENCE_S = 1200.0
"""Who names no deadline counts as due after this, as long as new Attempts are usually begun."""
STAGE_S, MOST_STAGES = 60.0, 10
BLOCKED_S, MOST_BLOCKED = 10.0, 60
"""By how much earlier it is due for each stage behind it, and for each that waits for it; and how many count."""
FURTHEST_S = PATIENCE_S + STAGE_S * MOST_STAGES + BLOCKED_S * MOST_BLOCKED
KEPT = 2_000
"""Lines of a model that are remembered; one that was not placed for so many others stands at the present."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What orders one Task among those that wait for a place."""

    line: Line
    size: float
    """The time of a device that it reserves; see `fairness.size`."""
    due: datetime


def turn_of(task: Task) -> Turn:
    """The turn of a Task."""
    asked = task.request
    return Turn((asked.tenant, asked.model, class_of(asked)), size(task.kind, asked.input), due_at(task))


def due_at(task: Task) -> datetime:
    """The moment that orders it within its line."""
    terms, end = task.request.terms or NO_TERMS, task.created_at + timedelta(seconds=PATIENCE_S)
    if task.request.deadline is not None:
        end = min(end, task.request.deadline)
    lead_s = STAGE_S * min(terms.stage, MOST_STAGES) + BLOCKED_S * min(terms.blocking, MOST_BLOCKED)
    return end - timedelta(seconds=lead_s)


class _Clock(Generic[Key]):
    """Virtual time over some that share: start-time fair queueing, reckoned when one is placed."""

    def __init__(self) -> None:
        self.now = 0.0
        self._stands: dict[Key, float] = {}

    def trial(self, keys: Iterable[Key]) -> "_Clock[Key]":
        """One to try things with, over those. Who was never seen stands at the present from now on."""
        made = _Clock[Key]()
        made.now, made._stands = self.now, {key: self._stands.setdefault(key, self.now) for key in keys}
        return made

    def stand(self, key: Key) -> float:
        """Where it stands."""
        return self._stands.get(key, self.now)

    def move(self, key: Key, charged: float) -> None:
        """It has its place."""
        stood = self._stands.pop(key, self.now)
        self._stands[key] = max(stood, self.now) + charged  # as the last one: the first is who was not placed for long
        self.now = max(self.now, stood)
        if len(self._stands) > KEPT:
            del self._stands[next(iter(self._stands))]


class Shares:
    """Where models and lines stand, by the placings of one process. Several processes share fairly each for itself."""

    def __init__(self) -> None:
        self._models: _Clock[str] = _Clock()
        self._lines: dict[Part, _Clock[Line]] = {}
        self._in_a_row: dict[str, int] = {}
        """By model: placings for the release since the last other one."""

    def order(self, turns: Sequence[Turn]) -> list[int]:
        """The places in `turns` of those who are to go first, second, and so on, if all of them can be placed."""
        if len(turns) == 1:
            return [0]
        lines: dict[Line, list[int]] = {}
        for place in sorted(range(len(turns)), key=lambda place: (turns[place].due, place), reverse=True):
            lines.setdefault(turns[place].line, []).append(place)
        trial, found = _Trial(self, lines), list[int]()
        for _ in turns:
            line = trial.next()
            found.append(lines[line].pop())
            trial.placed(line, turns[found[-1]].size, more=bool(lines[line]))
        return found

    def spread(self, lines: Collection[Line], places: int) -> dict[Line, int]:
        """How many of so many places are each line's, if each has enough Tasks that count as one."""
        trial, found = _Trial(self, lines), dict[Line, int]()
        for _ in range(places if lines else 0):
            line = trial.next()
            found[line] = found.get(line, 0) + 1
            trial.placed(line, 1.0, more=True)
        return found

    def placed(self, turn: Turn) -> None:
        """A Task has its place."""
        self.move(turn.line, turn.size)

    def move(self, line: Line, amount: float) -> None:
        """So much of the time of a device is that line's."""
        _, model, urgency = line
        self._models.move(model, amount)
        self._clock(part_of(line)).move(line, amount / CLASS_WEIGHTS[urgency])
        self._in_a_row[model] = self._in_a_row.get(model, 0) + 1 if urgency == RELEASE else 0

    def release_first(self, model: str) -> bool:
        """Whether the release goes before the others of that model."""
        return self._in_a_row.get(model, 0) < IN_A_ROW

    def stands(self, line: Line) -> float:
        """Where a line stands among those of its part."""
        return self._clock(part_of(line)).stand(line)

    def model_stands(self, model: str) -> float:
        """Where a model stands among all."""
        return self._models.stand(model)

    def trial(self, parts: Mapping[Part, Iterable[Line]]) -> "Shares":
        """One to try things with, over those lines."""
        made = Shares()
        made._models = self._models.trial({model for model, _ in parts})
        made._lines = {part: self._clock(part).trial(lines) for part, lines in parts.items()}
        made._in_a_row = {model: self._in_a_row.get(model, 0) for model, _ in parts}
        return made

    def _clock(self, part: Part) -> _Clock[Line]:
        return self._lines.setdefault(part, _Clock())


class _Trial:
    """The lines that have somebody waiting, those that stand furthest back first, each part a heap."""

    def __init__(self, shares: Shares, lines: Iterable[Line]) -> None:
        parts: dict[Part, list[Line]] = {}
        for line in lines:
            parts.setdefault(part_of(line), []).append(line)
        self._shares = shares.trial(parts)
        self._heaps = {part: [(self._shares.stands(line), line) for line in of_it] for part, of_it in parts.items()}
        self._models = sorted({model for model, _ in parts})
        for heap in self._heaps.values():
            heapify(heap)

    def next(self) -> Line:
        """The line that goes next; `placed` must follow."""
        model = min(self._models, key=self._shares.model_stands)
        release, others = self._heaps.get((model, True)), self._heaps.get((model, False))
        first = release if release and (not others or self._shares.release_first(model)) else others
        assert first  # a model leaves with its last line
        return heappop(first)[1]

    def placed(self, line: Line, amount: float, *, more: bool) -> None:
        """It has its place; `more` where more of it wait."""
        self._shares.move(line, amount)
        part = part_of(line)
        if more:
            heappush(self._heaps[part], (self._shares.stands(line), line))
        elif not self._heaps[part] and not self._heaps.get((part[0], not part[1])):
            self._models.remove(part[0])


def part_of(line: Line) -> Part:
    """The part of its model that a line shares in."""
    return line[1], line[2] == RELEASE
