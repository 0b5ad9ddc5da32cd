"""What a simulated world leaves behind, for the checkers: its books, the providers' ledger, and what witnesses saw."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from services.capacity.domain.leases import Lease
from services.cost_quote.domain.budgets import Budget, Hold, Mismatch
from services.health.ports import Recorded
from services.routing.domain.catalog import Catalog
from services.routing.domain.task import Task
from services.runs.domain.run import Event, Run
from tests.simulation.providers import Job
from tests.simulation.witness_of_money import Held


@dataclass(frozen=True, slots=True)
class Story:
    """One world at its end. `now` is the end in the loop's seconds; `epoch` is second 0."""

    epoch: datetime
    now: float
    runs: Sequence[Run]
    events: Mapping[str, Sequence[Event]]
    tasks: Sequence[Task]
    jobs: Sequence[Job]
    history: Sequence[Recorded]
    leases: Sequence[Lease]
    """What capacity still holds, one time to live after the last Run came to rest."""
    witnessed: Sequence[str]
    """Breaches of limits that were seen while they happened."""
    seen_by_witnesses: Mapping[str, int]
    """What witnesses counted, by what it is."""
    superseded: Sequence[str]
    """Words of superseded Attempts that still counted."""
    window_s: float
    """New Attempts begin within this time of their Task."""
    catalogs: Mapping[int, Catalog]
    """What each revision of the catalogue said when it was committed."""
    orders: Mapping[str, str]
    budgets: Sequence[Budget]
    holds: Mapping[str, Held]
    """When each Hold was held, as a witness saw it."""
    open_holds: Sequence[Hold]
    mismatches: Sequence[Mismatch]
    """What the ledger's own check finds."""
    steered: Mapping[str, Sequence[str]]
    """By production: the ids of the inputs that were acknowledged."""
    seen: Mapping[str, Sequence[int]]
    errors: Sequence[str] = field(default_factory=tuple)
    """Log lines at level error, and exceptions that nobody retrieved."""

    def at(self, seconds: float) -> datetime:
        """A moment of the loop as wall time."""
        return self.epoch + timedelta(seconds=seconds)


def tasks_of(run: Run) -> list[str]:
    """The ids of every Task that a Run's nodes ever had."""
    return [name for node in run.nodes.values() for name in node.task_ids or (node.task_id,) if name]


Checker = Callable[[Story], list[str]]
