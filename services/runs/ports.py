"""What runs needs of its store and of routing. Every call may raise Fault; none raises anything else."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from services.runs.domain.checks import Facts
from services.runs.domain.run import Artifact, Draft, Event, Order, Run, RunState
from services.runs.domain.task_view import TaskView


class Runs(Protocol):
    """Every Run with its events. A change and the events that tell it are one transaction (EVENT-1)."""

    async def add(
        self, run: Run, drafts: Sequence[Draft], key: str, fingerprint: str, now: datetime
    ) -> tuple[Run, bool]:
        """Keep a new Run and its first events; answers (the Run, whether `key` named an earlier one).

        With a key that this tenant used before, nothing is added and the earlier Run is answered; Fault
        idempotency_conflict if that key came with another fingerprint. A key that another transaction is about to write
        is waited for, a few seconds: Fault idempotency_in_progress. An empty key is no key.
        """
        ...

    async def find_by_key(self, tenant: str, key: str, fingerprint: str) -> Run | None:
        """The Run that this tenant's key made, or None.

        Fault idempotency_conflict if the key came with another fingerprint; an empty one fits any.
        """
        ...

    async def save(self, run: Run, drafts: Sequence[Draft], now: datetime) -> Run | None:
        """Replace the Run whose revision is `run.revision` and append its events, numbered without a gap.

        Answers the Run with its new revision and last_sequence, or None if somebody else was faster (nothing written).
        """
        ...

    async def get(self, run_id: str) -> Run | None:
        """The Run, or None."""
        ...

    async def page(
        self, tenant: str, states: Sequence[RunState], label: tuple[str, str | None] | None, before: str, size: int
    ) -> list[Run]:
        """Runs of a tenant with an id below `before` ("" = from the newest), newest first.

        `label` is (key, value); a None value asks only that the key is there.
        """
        ...

    async def live(self, states: Sequence[RunState], after: str, size: int) -> list[Run]:
        """Runs in those states with an id above `after`, oldest first: the work of the ticks."""
        ...

    async def events(self, run_id: str, after: int, size: int) -> list[Event]:
        """Events with a sequence above `after`, in order."""
        ...

    async def last_sequences(self, run_ids: Sequence[str]) -> Mapping[str, int]:
        """The newest sequence of each Run that exists."""
        ...


class Routing(Protocol):
    """Where nodes are served."""

    async def validate(self, tenant: str, order: Order) -> None:
        """Raise the Fault that would keep this order from ever being served."""
        ...

    async def submit(self, run: Run) -> None:
        """Hand the node's Task over; doing it twice is one Task."""
        ...

    async def withdraw(self, run: Run) -> None:
        """See to it that the node's Task ends: a hand-over that is still under way finds it cancelled."""
        ...

    async def tasks(self, task_ids: Sequence[str]) -> Mapping[str, TaskView]:
        """Those Tasks as they are now, by id; missing ones are left out."""
        ...

    async def waiting_reason(self, task_id: str) -> str:
        """Why that Task waits at this moment; "" where it does not wait any more."""
        ...

    async def cancel(self, task_id: str) -> None:
        """Ask for the Task to end; doing it twice is harmless."""
        ...


class Examiner(Protocol):
    """Looks at what was made."""

    async def examine(self, tenant: str, artifact: Artifact, readers: Collection[str] = ()) -> Facts:
        """What an artifact measures, and for a picture the text that each of these public models of kind ocr reads.

        What is missing, damaged or cannot be decoded is told in the facts and is no Fault; Fault if the store of blobs
        or a reader does not answer. Looking again at the same bytes is cheap and costs nothing.
        """
        ...
