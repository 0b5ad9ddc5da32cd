"""What the edge needs of its store, of the other contexts and of the outside. Calls raise Fault and nothing else.

Peers answer in the public shapes: `wire` has turned the contract between contexts into the contract with the world.
"""

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from libs.blobs.blob import Blob
from services.edge.domain import (
    alert_shapes,
    budget_shapes,
    call_shapes,
    callback_shapes,
    evidence_shapes,
    level_shapes,
    past_shapes,
    replay_shapes,
    run_shapes,
    shapes,
)
from services.edge.domain.budgets import BudgetOrder, LimitChange
from services.edge.domain.calls import CallOrder, Receipt, Served
from services.edge.domain.decisions import Command, Redrive, Verdict
from services.edge.domain.keys import Kept, Key
from services.edge.domain.orders import Order
from services.edge.domain.quotas import Quotas

Random = Callable[[int], bytes]
"""That many bytes that nobody can guess."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """YAML of a `policy`, of `prices` or of a whole `catalog`."""

    kind: str
    text: str


class Keys(Protocol):
    """Every key that was ever made, with the digest of its text."""

    async def add(self, key: Key, digest: str) -> None:
        """Keep a new key."""
        ...

    async def find(self, key_id: str) -> Kept | None:
        """The key as it stands now, or None. Never answered from a cache."""
        ...

    async def rotate(self, key_id: str, digest: str, now: datetime, former_until: datetime) -> Key | None:
        """Take this digest from now on; the one so far holds until `former_until`, those before it no more.

        None, and nothing is written, if there is no such key or it has ended by `now`.
        """
        ...

    async def page(self, tenant: str, before: str, size: int) -> list[Key]:
        """Keys of a tenant ("" = of all) with an id below `before` ("" = from the newest), newest first."""
        ...

    async def revoke(self, key_id: str, now: datetime) -> Key | None:
        """End a key from now on; one that has ended stays as it is. None if there is no such key."""
        ...


class Owners(Protocol):
    """Which tenant may read which artifact. Rows are only ever added."""

    async def add(self, tenant: str, digests: Iterable[str], now: datetime) -> None:
        """The tenant may read these; saying it again is harmless."""
        ...

    async def owns(self, tenant: str, digest: str) -> bool:
        """Whether it may."""
        ...

    async def ping(self) -> None:
        """Return if the store answers."""
        ...


class RequestCounts(Protocol):
    """What each replica has let in, by tenant and minute. Worth a minute: what is lost is counted anew."""

    async def exchange(self, replica: str, minute: int, requests: Mapping[str, int]) -> Mapping[str, int]:
        """Tell this replica's counts of a minute, by tenant, and learn the sum of all others' of the same minute.

        A tenant that nobody else has let in may be left out. Telling a count again replaces it.
        """
        ...


class Runs(Protocol):
    """The context `runs`."""

    async def replay(self, tenant: str, key: str, fingerprint: str) -> shapes.Run | None:
        """The Run of that key, or None. Fault idempotency_conflict: it came with another body; "" fits any."""
        ...

    async def create(
        self, tenant: str, order: Order, deadline: datetime | None, key: str, fingerprint: str
    ) -> tuple[shapes.Run, bool]:
        """(the Run, whether the key named an earlier one)."""
        ...

    async def check(self, tenant: str, order: Order) -> None:
        """Fault validation_failed with everything that is known to be wrong with a production; nothing is made."""
        ...

    async def get(self, tenant: str, run_id: str) -> tuple[shapes.Run, int]:
        """(the Run, sequence of its newest event); Fault not_found for another tenant's."""
        ...

    async def page(
        self, tenant: str, statuses: Sequence[str], label: str, size: int, token: str
    ) -> tuple[list[shapes.Run], str]:
        """(Runs, newest first; the token of the next page or "")."""
        ...

    async def join(self, tenant: str, run_id: str, timeout_s: float) -> shapes.Run:
        """The Run at rest; Fault join_timeout."""
        ...

    async def cancel(self, tenant: str, run_id: str, reason: str, who: str) -> shapes.Run:
        """The Run with its cancel on record; Fault run_terminal."""
        ...

    async def pause(self, tenant: str, run_id: str, reason: str, command: Command) -> tuple[shapes.Run, bool]:
        """(the Run, held: nothing new is submitted; whether the command was applied before). Fault run_terminal."""
        ...

    async def resume(self, tenant: str, run_id: str, reason: str, command: Command) -> tuple[shapes.Run, bool]:
        """(the Run, going on; whether the command had been applied before). Fault run_terminal."""
        ...

    async def steer(
        self, tenant: str, run_id: str, kind: str, data: dict[str, Any], command: Command
    ) -> tuple[run_shapes.Steered, bool]:
        """(an input, accepted; whether it had been before). Fault run_terminal."""
        ...

    async def redrive(
        self, tenant: str, run_id: str, asked: Redrive, command: Command
    ) -> tuple[run_shapes.Redriven, bool]:
        """(the Run, at work again, or with `preview` as it is; whether the command had been applied before). An empty
        tenant means any. Faults not_found, conflict, run_terminal, validation_failed."""
        ...

    async def events(self, tenant: str, run_id: str, after: int, size: int) -> list[shapes.RunEvent]:
        """Events after a cursor; Fault malformed_request for one that lies ahead."""
        ...

    def follow(self, tenant: str, run_id: str, after: int) -> AsyncGenerator[list[shapes.RunEvent], None]:
        """Batches without gap or repetition, until the Run is at rest and all was told."""
        ...

    async def levels(self, window_s: float) -> level_shapes.ServiceLevelReport:
        """Figures of Runs created within that time."""
        ...

    async def ping(self) -> None:
        """Return if it answers."""
        ...


class Desks(Protocol):
    """People's desks in the context `runs`. An empty tenant means any."""

    async def reviews(
        self, tenant: str, statuses: Sequence[str], run_id: str, size: int, token: str
    ) -> tuple[list[run_shapes.Review], str]:
        """(Reviews in the order of the queue, the token of the next page or ""); no statuses = what waits."""
        ...

    async def review(self, review_id: str) -> run_shapes.Review:
        """One review, whatever became of it; Fault not_found."""
        ...

    async def claim(self, review_id: str, who: str) -> run_shapes.Review:
        """The review, for that person; Faults not_found, conflict."""
        ...

    async def decide(self, review_id: str, who: str, verdict: Verdict) -> run_shapes.Review:
        """The review, decided; Faults not_found, conflict, validation_failed."""
        ...

    async def dead_letters(
        self, tenant: str, run_id: str, with_redriven: bool, size: int, token: str
    ) -> tuple[list[run_shapes.DeadLetter], str]:
        """(Case files, newest first; the token of the next page or "")."""
        ...

    async def dead_letter(self, letter_id: str) -> run_shapes.DeadLetter:
        """One case file; Fault not_found."""
        ...


class Routing(Protocol):
    """The context `routing`: Tasks, Attempts, alerts. An empty tenant means any."""

    async def task(self, tenant: str, task_id: str) -> tuple[shapes.Task, frozenset[str]]:
        """(the Task, digests of the artifacts it gave); Fault not_found."""
        ...

    async def selections(self, tenant: str, task_id: str) -> list[shapes.Selection]:
        """Every round, oldest first; Fault not_found."""
        ...

    async def replay(self, tenant: str, task_id: str) -> replay_shapes.Replay:
        """Every round decided again; Fault not_found."""
        ...

    async def what_if(
        self, alternative: Alternative, since: datetime, model: str, size: int, token: str
    ) -> replay_shapes.WhatIf:
        """A page of history under an alternative, from `since` to now; Fault catalog_invalid for a bad text."""
        ...

    async def uncertain(self, size: int, token: str) -> tuple[list[shapes.UncertainAttempt], str]:
        """Attempts whose submission is uncertain or unresolved, a page of Tasks at a time."""
        ...

    async def alerts(
        self, kind: str, subject: str, open_only: bool, size: int, token: str
    ) -> tuple[list[alert_shapes.Alert], str]:
        """Alerts, open ones first, the worst consequence first; empty filters mean all."""
        ...

    async def acknowledge(self, alert_id: str) -> alert_shapes.Alert:
        """An operator has seen it; Fault not_found."""
        ...

    async def explanation(self, task_id: str) -> past_shapes.Explanation:
        """Why it went where it went; Fault not_found."""
        ...

    async def resolve(self, attempt_id: str, resolution: str, provider_task_id: str, comment: str) -> shapes.Task:
        """An operator's word on an uncertain submission."""
        ...

    async def ping(self) -> None:
        """Return if it answers."""
        ...


class Calls(Protocol):
    """Routing's synchronous calls. An order is sent once: what became of it is asked for, never tried again here."""

    async def invoke(self, tenant: str, call_id: str, order: CallOrder) -> Served:
        """What it gave, and the receipt. Whoever is cancelled here gives the call up at its provider too."""
        ...

    def stream(self, tenant: str, call_id: str, order: CallOrder) -> AsyncGenerator[list[bytes] | Receipt, None]:
        """Pieces, each a JSON object, those together that came together; at the very end the receipt. Closing it gives
        the call up."""
        ...

    async def get(self, tenant: str, call_id: str) -> call_shapes.Call:
        """A call on record; an empty tenant means any. Fault not_found."""
        ...

    async def replay(self, tenant: str, call_id: str) -> replay_shapes.CallReplay:
        """Every selection round of a call decided again; as `get`."""
        ...


class Catalog(Protocol):
    """The catalogue, owned by `routing`."""

    async def models(self, tenant: str) -> list[shapes.Model]:
        """What that tenant may use."""
        ...

    async def quotas(self) -> Mapping[str, Quotas]:
        """By tenant; one that has none may be left out."""
        ...

    async def apply(self, text: str, merge: bool) -> shapes.Applied:
        """Apply a file, all or nothing; Fault catalog_invalid names every fault by path."""
        ...

    async def diff(self, text: str, merge: bool) -> shapes.CatalogDiff:
        """What that would change."""
        ...

    async def show(self, kind: str, retired: bool) -> shapes.Catalog:
        """Every object of a sort ("" = of all)."""
        ...

    async def publish(self, model_id: str) -> shapes.Publication:
        """Open a model, if it passes the gate."""
        ...

    async def verify(self, supply_id: str, verification_id: str, wait_s: float) -> evidence_shapes.Verification:
        """Run a Supply's regression set, or go on with the one of that id, and wait so long for its end."""
        ...

    async def set_admin_state(self, sort: str, subject_id: str, state: str, reason: str) -> shapes.CatalogObject:
        """`sort` is channel or supply; `state` enabled, draining or disabled."""
        ...


class Health(Protocol):
    """The context `health`."""

    async def snapshot(self) -> shapes.Health:
        """The state of every Channel and Supply."""
        ...

    async def past(self, sort: str, subject_id: str, at: datetime | None) -> past_shapes.PastHealth:
        """A `channel` or `supply` at a time, None = now; Fault not_found where it was not declared then."""
        ...

    async def set_circuit(self, sort: str, subject_id: str, opened: bool, reason: str) -> shapes.SubjectHealth:
        """An operator's word on the breaker of a `channel` or `supply`. Faults not_found, conflict (it is disabled)."""
        ...

    async def ping(self) -> None:
        """Return if it answers."""
        ...


class Capacity(Protocol):
    """The context `capacity`."""

    async def figures(self) -> shapes.Capacity:
        """The figures of every Channel and Supply, and the live leases."""
        ...

    async def ping(self) -> None:
        """Return if it answers."""
        ...


class Budgets(Protocol):
    """The ledger of `cost_quote`."""

    async def page(self, tenant: str, root: str, size: int, token: str) -> tuple[list[budget_shapes.Budget], str]:
        """Parents before children; empty filters mean all."""
        ...

    async def get(self, budget_id: str) -> budget_shapes.Budget:
        """One; Fault not_found."""
        ...

    async def create(self, order: BudgetOrder) -> budget_shapes.Budget:
        """Make it, or find it as it was declared before; Fault already_exists, validation_failed."""
        ...

    async def change(self, budget_id: str, change: LimitChange, request_id: str) -> budget_shapes.Budget:
        """Change limits; Fault not_found, validation_failed, conflict for other limits under the same request_id."""
        ...

    async def entries(self, budget_id: str, after: int, size: int) -> list[budget_shapes.BudgetEntry]:
        """Movements after a sequence, oldest first; Fault not_found."""
        ...

    async def mismatches(self) -> list[budget_shapes.LedgerMismatch]:
        """What does not add up."""
        ...

    async def ping(self) -> None:
        """Return if it answers."""
        ...


class MaterialIntake(Protocol):
    """The one way in for materials (AUTH-4): `libs.materials.intake`. `family` is image, video, audio, or "" = any."""

    async def refusal(self, url: str) -> str | None:
        """Why a URL that others are to call may not be used, or None."""
        ...

    async def from_url(self, url: str, family: str) -> Blob:
        """Fetch, judge and keep. Raises NotAllowed or Unfit."""
        ...

    async def from_bytes(self, content: bytes, family: str) -> Blob:
        """Judge and keep bytes. Raises Unfit."""
        ...

    async def check(self, blob: Blob, family: str) -> None:
        """Judge what is kept already. Raises Unfit."""
        ...


class Callbacks(Protocol):
    """Messages to the URLs that Runs name, at the context `runs`."""

    async def of_run(self, tenant: str, run_id: str) -> list[callback_shapes.Callback]:
        """Newest first; Fault not_found for another tenant's Run."""
        ...

    async def rotate_secret(self, tenant: str) -> str:
        """A new secret of the tenant; the one before signs beside it until the next change."""
        ...
