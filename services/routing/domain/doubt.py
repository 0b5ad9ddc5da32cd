"""What a database that was put back to a backup does not know, and how it is found out. Pure.

Laws of this file:
- a token follows from its Task and its place among the Attempts that count, so that a life of the database that knows
  nothing of an Attempt can still ask for it by name. An Attempt of which no byte left leaves its token to the next;
- what may have been sent is in doubt until every Supply that may have it has said that it does not (ATT-6);
- whose work came to be after a restore was noticed is in no doubt.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from libs.kernel.canonical import digest
from libs.kernel.money import Money
from services.routing.domain.attempts import counted
from services.routing.domain.catalog import Catalog, Policy, Supply
from services.routing.domain.offer import offer_of
from services.routing.domain.task import Attempt, AttemptState, Doubt, Task
from services.routing.domain.trial import model_in

TOKEN_LENGTH = 26
FORGOTTEN = 10
"""So many more Attempts than this life knows of may a Task have had."""
LOOK_PAUSE_S = 2.0
PATIENCE = timedelta(seconds=60)
"""Records that cannot tell are asked again in the queue for so long, counted from when a submission of the life before
must have arrived; then the doubt becomes an Attempt, which ends by a verdict, a person's word or as unresolved."""
SLACK = timedelta(seconds=60)
"""Clocks of those who take backups may be so far off."""


@dataclass(frozen=True, slots=True)
class Restore:
    """The database was put back. `over_at`: nothing of it needs to be looked up any more; `pulse`: see `silence`, when
    it was noticed."""

    backup_at: datetime
    noticed_at: datetime
    over_at: datetime | None = None
    pulse: int = 0


@dataclass(frozen=True, slots=True)
class Life:
    """What tells one life of a database from a copy that was put back: its name, and a count that only rises."""

    database: str
    beat: int
    at: datetime


def was_put_back(known: Life, marked: Life | None) -> bool:
    """Whether the database has lived longer than it remembers. `marked` is what was kept beside it."""
    return marked is not None and marked.database == known.database and marked.beat > known.beat


def token_of(task: Task, number: int) -> str:
    """The client token of the Attempt that counts as that number, from 1.

    The Task of a Run has an id that nobody else gives. Others are named by their callers, and another deployment with
    the same accounts may have been given the same name: the moment at which it came tells the two apart.
    """
    named = [task.id, number] if task.run_id else [task.id, task.created_at.isoformat(), number]
    return digest(named)[:TOKEN_LENGTH]


def next_number(task: Task) -> int:
    """The number of the next Attempt: above every one that was used, also by a life before."""
    used = {attempt.client_token for attempt in task.attempts if attempt.counted}
    if not used:
        return 1
    most = len(task.attempts) + FORGOTTEN
    return max((number for number in range(1, most) if token_of(task, number) in used), default=len(used)) + 1


def numbers_to_ask(task: Task, policy: Policy) -> Sequence[int]:
    """Those that a life before may have used: the newest first, because it is the one that goes on."""
    first = next_number(task)
    left = task.request.attempts_within(policy.max_attempts) - counted(task)
    return range(first + max(left, 1) - 1, first - 1, -1)


def places_to_ask(catalog: Catalog, task: Task) -> tuple[Supply, ...]:
    """Every Supply that may have been sent it, but those that were found not to have it."""
    model = model_in(catalog, task.request.model)
    offered = offer_of(catalog, model).supplies if model is not None else catalog.supplies
    cleared = {attempt.supply for attempt in task.attempts if _cleared(attempt)}
    places = (supply for key, supply in sorted(offered.items()) if key not in cleared)
    return tuple(supply for supply in places if str(supply.kind) == task.kind and supply.channel in catalog.channels)


def _cleared(attempt: Attempt) -> bool:
    return attempt.doubted and attempt.state is AttemptState.NOT_ACCEPTED


def doubt_of(restores: Iterable[Restore], came_at: datetime | None) -> Doubt | None:
    """The doubt of a Task whose work came to be then; None = now."""
    since = [item for item in restores if item.over_at is None and came_at is not None and came_at < item.noticed_at]
    if not since:
        return None
    return Doubt(min(item.backup_at for item in since), max(item.noticed_at for item in since))


def attempt_in_doubt(
    attempt_id: str, task: Task, supply: Supply, catalog_revision: int, number: int, quote: Money, now: datetime
) -> Attempt:
    """What stands for a submission of a life before: it counts once it is known to be one."""
    assert task.doubt is not None, "only what is in doubt is looked for"
    return Attempt(
        id=attempt_id,
        task_id=task.id,
        number=len(task.attempts) + 1,
        supply=supply.id,
        channel=supply.channel,
        state=AttemptState.RESERVED,
        client_token=token_of(task, number),
        epoch=task.epoch,
        round=task.rounds,
        quote=quote,
        lease_id="",
        catalog_revision=catalog_revision,
        input=dict(task.request.input),
        submitted_at=task.doubt.since,
        reserved_at=now,
        counted=False,
        doubted=True,
    )
