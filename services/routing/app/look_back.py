"""A queued Task that a life before the database was put back may have sent: providers are asked first (ATT-5, ATT-6).

Laws of this file:
- records are read and nothing is sent, not even the same under the same key: where the other life never sent it, that
  would be a job more;
- what is found goes on under its own token; what surely is nowhere is sent like any other; what nobody can tell becomes
  an uncertain Attempt, which a verdict, a person or its deadline ends. It is never paid again on a guess.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal

from libs.faults.fault import Fault
from libs.kernel.money import Money
from services.routing.app.desk import Desk, policy_of
from services.routing.app.listen import silent_s
from services.routing.domain import transitions
from services.routing.domain.attempts import fault, next_look, next_poll
from services.routing.domain.catalog import Catalog, Supply
from services.routing.domain.doubt import (
    LOOK_PAUSE_S,
    PATIENCE,
    attempt_in_doubt,
    numbers_to_ask,
    places_to_ask,
    token_of,
)
from services.routing.domain.request_facts import billing_mode
from services.routing.domain.task import Attempt, Task
from services.routing.ports import Priced, Reconciled, Write

FIRST_POLL_S = 0.1

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Answer:
    """What one Supply's records say of all that a Task may have sent there; what was found has its token and number."""

    attempt: Attempt
    said: Reconciled
    number: int = 0


async def look_back(desk: Desk, task: Task) -> None:
    """Ask every Supply that may have it, and go on by what they say."""
    catalog = await desk.catalog.newest()
    answers = await asyncio.gather(*(look_at(desk, catalog, task, each) for each in await _tries(desk, catalog, task)))
    found = max(answers, key=lambda answer: answer.number, default=None)
    untold = next((answer for answer in answers if answer.said.verdict == "unknown"), None)
    now = desk.now()
    if found is not None and found.number:  # the newest of several: the one before it had failed
        await _adopt(desk, catalog, task, found)
    elif untold is None:
        await desk.store.save(Write(task, transitions.undoubted(task, now), now))
    else:
        reason = f"uncertain: the database was put back, {untold.attempt.supply} may have it: {untold.said.evidence}"
        pause_s = LOOK_PAUSE_S * (1 + 4 * desk.chance())  # many may be in doubt, and ask one list
        if now < _arrived(catalog, task, untold.attempt) + PATIENCE:
            await desk.store.save(Write(task, transitions.waiting(task, reason, desk.in_s(pause_s)), now))
        else:
            await _doubt(desk, catalog, task, untold.attempt, reason)
    desk.bell.ring()


async def look_at(desk: Desk, catalog: Catalog, task: Task, attempt: Attempt) -> Answer:
    """Ask the records of the Attempt's Supply for every token that the Task may have used; a fault is no answer."""
    channel, supply = catalog.channels[attempt.channel], catalog.supplies[attempt.supply]
    until = task.doubt.until if task.doubt is not None else attempt.reserved_at or desk.now()
    silence_s = await silent_s(desk, attempt)
    told = Answer(attempt, Reconciled("not_accepted"))
    for number in numbers_to_ask(task, policy_of(catalog, task)):
        named = replace(attempt, client_token=token_of(task, number))
        try:
            said = await desk.provider.look_up(channel, supply, named, until, silence_s)
        except Fault as error:
            said = Reconciled("unknown", evidence=f"it did not answer ({error.code})")
        if said.verdict == "accepted" and said.provider_task_id:
            return Answer(named, said, number)
        if said.verdict != "not_accepted":  # an acceptance without a name is none that could be followed
            told = Answer(attempt, replace(said, verdict="unknown"))
    return told


async def _tries(desk: Desk, catalog: Catalog, task: Task) -> Sequence[Attempt]:
    """What would stand for a submission at each Supply that may have it."""
    places = places_to_ask(catalog, task)
    quotes = await _quotes(desk, catalog, task, places)
    oldest, now = numbers_to_ask(task, policy_of(catalog, task))[-1], desk.now()
    return [
        attempt_in_doubt(desk.world.ids.ulid(), task, supply, catalog.revision, oldest, quotes[supply.id], now)
        for supply in places
    ]


async def _quotes(desk: Desk, catalog: Catalog, task: Task, places: Sequence[Supply]) -> Mapping[str, Money]:
    """What each would cost: booked where its provider tells no price. What has no price is booked by its word alone."""
    if not places:
        return {}
    priced = [Priced(supply, task.request.input) for supply in places]
    mode = billing_mode(places[0].kind, task.request.billing_mode)
    views = await desk.quotes.quote(task.kind, mode, priced, catalog.revision)
    return {supply.id: Money(catalog.currency, views[supply.id].amount or Decimal(0)) for supply in places}


async def _adopt(desk: Desk, catalog: Catalog, task: Task, found: Answer) -> None:
    """Follow it. What it costs is held where there is room, and booked in any case: it is charged already."""
    job, attempt = found.said.provider_task_id, found.attempt
    log.warning("task %s: the database had forgotten job %s at %s; it is followed", task.id, job, attempt.supply)
    await desk.funds.for_found(catalog, task, attempt.quote)
    now = desk.now()
    known = _uncertain(task, attempt, "found after the database was put back", now, now)
    poll_at = next_poll(attempt, FIRST_POLL_S, None, now, desk.chance())
    await desk.store.save(Write(task, transitions.accepted(known, known.live or attempt, job, now, poll_at), now))


async def _doubt(desk: Desk, catalog: Catalog, task: Task, attempt: Attempt, reason: str) -> None:
    """From here on it is an uncertain submission like any other (ATT-6), and keeps what is held for it (COST-12)."""
    await desk.funds.for_found(catalog, task, attempt.quote)
    now, deadline = desk.now(), desk.in_s(policy_of(catalog, task).uncertain_deadline_s)
    look = next_look(replace(attempt, uncertain_deadline=deadline), now, desk.chance())
    await desk.store.save(Write(task, _uncertain(task, attempt, reason, look, deadline), now))


def _uncertain(task: Task, attempt: Attempt, reason: str, look: datetime, deadline: datetime) -> Task:
    since = task.doubt.since if task.doubt is not None else look
    text = f"the database was put back to {since.isoformat(timespec='seconds')}; {attempt.supply} may have it since"
    sent = transitions.submitting(task, attempt, since, deadline)
    unknown = fault("submission_unknown", text, "unknown", "attempt")
    return transitions.uncertain(sent, sent.live or attempt, unknown, reason, look)


def _arrived(catalog: Catalog, task: Task, attempt: Attempt) -> datetime:
    """When whatever a life before was sending there has arrived or never will."""
    until = task.doubt.until if task.doubt is not None else attempt.reserved_at
    assert until is not None, "what is in doubt has a time"
    return until + timedelta(seconds=catalog.channels[attempt.channel].timeouts.submit_s)
