"""What runs needs of its store and of other contexts. Every call may raise Fault; none raises anything else."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from libs.kernel.money import Money
from services.runs.domain.alerting import Alert
from services.runs.domain.callbacks import Callback, Sent
from services.runs.domain.desks import DeadLetter, DeskChanges, Review, ReviewState
from services.runs.domain.judging import Facts
from services.runs.domain.memos import Memo
from services.runs.domain.plan import Plan, Spec
from services.runs.domain.run import Artifact, Draft, Event, Node, Order, Run, RunState
from services.runs.domain.task_view import Estimate, Held, HeldMinutes, Level, Quota, Refused, Settled, TaskView


class Runs(Protocol):
    """Every Run with its events. A change and the events that tell it are one transaction (EVENT-1)."""

    async def add(
        self, run: Run, drafts: Sequence[Draft], key: str, fingerprint: str, now: datetime
    ) -> tuple[Run, bool]:
        """Keep a new Run and its first events; answers (the Run, whether `key` named an earlier one).

        With a key that this tenant used before, nothing is added and the earlier Run is answered; Fault
        idempotency_conflict if that key came with another fingerprint. An empty key is no key.
        """
        ...

    async def find_by_key(self, tenant: str, key: str, fingerprint: str) -> Run | None:
        """The Run that this tenant's key made, or None.

        Fault idempotency_conflict if the key came with another fingerprint; an empty one fits any.
        """
        ...

    async def save(self, run: Run, drafts: Sequence[Draft], now: datetime, desks: DeskChanges) -> Run | None:
        """Replace the Run whose revision is `run.revision`, append its events, numbered without a gap, and write what
        they change on people's desks. What changed is what the drafts tell (EVENT-3).

        Answers the Run with its new revision and last_sequence, or None if somebody else was faster (nothing written).
        """
        ...

    async def catch_up(self, run: Run) -> None:
        """Let what is kept beside the events of a large Run tell all that they tell, where this process left or found
        it behind; nothing if somebody has written the Run since. What is read is the same before and after."""
        ...

    async def get(self, run_id: str) -> Run | None:
        """The Run, or None."""
        ...

    async def page(
        self, tenant: str, states: Sequence[RunState], label: tuple[str, str | None] | None, before: str, size: int
    ) -> list[Run]:
        """Runs of a tenant ("" = of all) with an id below `before` ("" = from the newest), newest first.

        `label` is (key, value); a None value asks only that the key is there.
        """
        ...

    async def several(self, run_ids: Sequence[str]) -> list[Run]:
        """Those of them that exist, oldest first."""
        ...

    async def revisions(
        self, states: Sequence[RunState], after: str, size: int, *, productions: bool
    ) -> Mapping[str, int]:
        """The revisions of productions, or single generations, in those states with an id above `after`, oldest first.
        No state that ends a Run. Whatever changes a Run changes its revision; reading it costs little, however large
        the Run is."""
        ...

    async def silent(self, before: datetime, after: str, size: int) -> Mapping[str, int]:
        """The revisions of pending and running Runs with an id above `after` whose newest event is older than `before`,
        oldest first."""
        ...

    async def events(self, run_id: str, after: int, size: int) -> list[Event]:
        """Events with a sequence above `after`, in order."""
        ...

    async def histories(
        self, since: datetime, kinds: Collection[str], size: int, most_events: int
    ) -> list[list[Event]]:
        """The events of those kinds of each Run that was created since then and whose history is whole, oldest Run
        first; of the newest `size` Runs at most, and of none behind which newer ones had `most_events` of any kind."""
        ...

    async def memo(self, tenant: str, input_hash: str, besides: str) -> Memo | None:
        """What an equal node of that tenant gave in another Run than `besides`; written by `save` alone (RUN-5)."""
        ...

    async def prune(self, before: datetime, size: int) -> int:
        """Forget all events but the last one of at most `size` Runs that ended before `before`; answers of how many.

        Runs that ended as dead letters keep theirs: they are case files, and may be redriven (DLQ-1).
        """
        ...

    async def last_sequences(self, run_ids: Sequence[str]) -> Mapping[str, int]:
        """The newest sequence of each Run that exists."""
        ...


class Desks(Protocol):
    """What stands on people's desks; written by `Runs.save` alone."""

    async def review(self, review_id: str) -> Review | None:
        """The review as it stands, or None."""
        ...

    async def reviews(
        self, tenant: str, states: Sequence[ReviewState], run_id: str, offset: int, size: int
    ) -> list[Review]:
        """Reviews in the order of the queue (HUMAN-3): by rank, those of one root cause together, oldest first.

        An empty tenant, `states` or `run_id` means any.
        """
        ...

    async def letter(self, letter_id: str) -> DeadLetter | None:
        """The case file, or None."""
        ...

    async def letters(self, tenant: str, run_id: str, with_redriven: bool, before: str, size: int) -> list[DeadLetter]:
        """Case files after the one with id `before` ("" = from the newest), newest first."""
        ...

    async def attempts_told(self, run_id: str, node: str) -> list[Mapping[str, Any]]:
        """What `attempt_finished` told of that node, oldest first."""
        ...


class Routing(Protocol):
    """Where nodes are served."""

    async def validate(self, tenant: str, order: Order, supply: str = "", run_id: str = "") -> Estimate:
        """What such an order may cost at worst, by that Supply alone where one is named. All that is asked for one Run
        counts once towards the tenant's quota of Runs that wait; without an id it is a Run of its own.

        Raises the Fault that would keep it from ever being served.
        """
        ...

    async def quota(self, tenant: str, at: datetime) -> Quota | None:
        """The budget of that tenant's period, which is there by then; None where it has no quota of money."""
        ...

    async def submit(self, plan: Plan, run: Run, node: Node) -> None:
        """Hand the node's Task over; doing it twice is one Task."""
        ...

    async def withdraw(self, plan: Plan, run: Run, node: Node) -> None:
        """See to it that the node's Task ends: a hand-over that is still under way finds it cancelled."""
        ...

    async def tasks(self, task_ids: Sequence[str]) -> Mapping[str, TaskView]:
        """Those Tasks as they are now, by id, however many; missing ones are left out."""
        ...

    async def waiting_reason(self, task_id: str) -> str:
        """Why that Task waits at this moment; "" where it does not wait any more."""
        ...

    async def cancel(self, task_id: str) -> None:
        """Ask for the Task to end; doing it twice is harmless."""
        ...

    async def pause(self, task_ids: Sequence[str], paused: bool) -> None:
        """Hold these Tasks from new attempts, or let them go on; doing it twice is harmless."""
        ...


class Budgets(Protocol):
    """Where money, attempts and minutes of reviewers are held (COST-9, COST-10)."""

    async def usable(self, budget_id: str, tenant: str) -> bool:
        """Whether there is such a budget and the tenant may spend from it: its own, or one that is no tenant's for
        operators' own work."""
        ...

    async def make(self, budget_id: str, parent: str, tenant: str, plan: Plan) -> None:
        """Make the budget of a production; doing it twice is one budget, whatever its limits are by then."""
        ...

    async def make_node(self, budget_id: str, parent: str, tenant: str, spec: Spec, currency: str) -> None:
        """Make the budget of a node under that of its production; doing it twice is one budget."""
        ...

    async def hold(self, hold_id: str, budget_id: str, cost: Money, attempts: int, subject: str) -> Held | Refused:
        """Reserve at every level, or at none; the same id is the same Hold.

        Fault `already_exists` where that id was held for other amounts, `conflict` where it was given back before.
        """
        ...

    async def standing(self, hold_id: str, budget_id: str) -> Held:
        """That Hold as it stands, of whatever amounts. Fault `conflict` where it has ended, `not_found` for none."""
        ...

    async def settle(
        self, hold_id: str, cost: Money | None, attempts: int, reason: str, correct: bool = False
    ) -> Settled:
        """Book what it really cost and free the rest; doing it twice is once, and with `correct` replaces what was
        booked, also for a Hold that was given back. Fault `conflict` without it where it has ended in another way.

        With neither cost nor attempts the Hold is given back, and an id that was never held is closed to holding.
        """
        ...

    async def hold_minutes(self, hold_id: str, budget_id: str, minutes: int, subject: str) -> HeldMinutes | Refused:
        """Reserve minutes of reviewers at every level, or at none; the same id is the same Hold.

        Fault `conflict` where it was given back before.
        """
        ...

    async def settle_minutes(self, hold_id: str, minutes: int, reason: str) -> Settled:
        """Book the minutes that it took and free the rest; doing it twice is once.

        With none the Hold is given back, and an id that was never held is closed to holding.
        """
        ...

    async def level(self, budget_id: str) -> Level:
        """How that budget stands now. Fault not_found."""
        ...

    async def raise_limit(
        self, budget_id: str, dimension: str, limit: Money | int, reason: str, request_id: str
    ) -> None:
        """The new hard limit of that budget in one dimension: `cost`, `attempts` or `review_minutes`; doing it twice is
        once. One that is higher by then, or is none, stays: somebody else has raised it since this was decided."""
        ...


class Examiner(Protocol):
    """Looks at what was made."""

    async def examine(self, tenant: str, artifact: Artifact, readers: Collection[str] = ()) -> Facts:
        """What an artifact measures, and for a picture the text that each of these public models of kind ocr reads.

        What is missing, damaged or cannot be decoded is told in the facts and is no Fault; Fault if the store of blobs
        or a reader does not answer. Looking again at the same bytes is cheap and costs nothing.
        """
        ...


class Alerts(Protocol):
    """How operators are told (OPS-6)."""

    async def tell(self, alert: Alert, link: str) -> None:
        """Raise it, with the path of the API where more is to be seen. Never a Fault: what nobody takes now is told
        again."""
        ...


class AlertBook(Protocol):
    """Where alerts are kept, of all contexts."""

    async def keep(self, alert: Alert, link: str) -> None:
        """Keep it; one of the same kind, subject and sort counts until it is acknowledged. Faults of a store, and
        `validation_failed` for what is no alert."""
        ...


class Callbacks(Protocol):
    """Messages about ends of Runs; they come into being in `Runs.save` alone, with the event that they tell."""

    async def claim(self, now: datetime, until: datetime, busy: Sequence[str], size: int) -> list[Callback]:
        """Messages that are due at `now`, longest due first, but not of `busy` tenants; they are due again at `until`.

        Each counts one attempt more. Nobody else is given them before `until`.
        """
        ...

    async def record(self, callback: Callback) -> bool:
        """Keep how a sending went; False, and nothing is written, if the message was claimed again since."""
        ...

    async def of_run(self, run_id: str) -> list[Callback]:
        """The messages about that Run, newest first."""
        ...


class WebhookSecrets(Protocol):
    """The secrets of tenants, sealed at rest."""

    async def add(self, tenant: str, secret_id: str, text: str, now: datetime) -> None:
        """Keep a new one."""
        ...

    async def of(self, tenant: str, size: int) -> list[str]:
        """The newest ones, newest first."""
        ...


class Receivers(Protocol):
    """Other people's servers."""

    async def send(self, url: str, body: bytes, headers: Mapping[str, str]) -> Sent:
        """POST it; never raises for what the receiver does, and never reaches where users' URLs may not lead."""
        ...


Random = Callable[[int], bytes]
"""So many bytes that nobody can guess."""
