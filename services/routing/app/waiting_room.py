"""How soon a Task that waits for capacity looks again: the front of the line soon, the back of a long line later.

Every look costs a decision. With a thousand Tasks waiting for sixteen slots, looking with all of them several times a
second would cost more than it finds: whoever is far back is passed by its elders anyway. So the first `FRONT` of each
model and class of urgency look after the shortest pause, the next `FRONT` after two of them, and so on. A release wakes
the oldest of each class besides. Only a saving: what it knows is this process's and may be lost at any time.
"""

from bisect import bisect_left, insort
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from services.routing.domain.task import Task

FRONT = 16
LONGEST_PAUSES = 40
FORGOTTEN_AFTER = timedelta(seconds=120)
"""One that has not looked for so long was taken on by another process."""

Place = tuple[datetime, str]


@dataclass(slots=True)
class _Line:
    places: list[Place] = field(default_factory=list)
    seen: dict[str, datetime] = field(default_factory=dict)


class WaitingRoom:
    """The lines of this process, by model and class of urgency; each is in the order of creation."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, str], _Line] = {}

    def pauses(self, task: Task, now: datetime) -> int:
        """How many of the shortest pauses the Task waits; it stands in the line from now on."""
        line = self._lines.setdefault(_line_of(task), _Line())
        place = (task.created_at, task.id)
        if task.id not in line.seen:
            insort(line.places, place)
        line.seen[task.id] = now
        self._forget(line, now)
        return min(1 + bisect_left(line.places, place) // FRONT, LONGEST_PAUSES)

    def leave(self, task: Task) -> None:
        """It waits no more."""
        key = _line_of(task)
        line = self._lines.get(key)
        if line is not None and line.seen.pop(task.id, None) is not None:
            del line.places[bisect_left(line.places, (task.created_at, task.id))]
            if not line.places:
                del self._lines[key]

    def _forget(self, line: _Line, now: datetime) -> None:
        for place in line.places[:FRONT]:
            if now - line.seen[place[1]] > FORGOTTEN_AFTER:
                line.places.remove(place)
                del line.seen[place[1]]


def _line_of(task: Task) -> tuple[str, str]:
    return task.request.model, task.request.priority
