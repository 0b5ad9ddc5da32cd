"""A turn: what waits to be decided here is looked at together, decided one by one, reserved at once (SEL-13).

Laws of this file:
- one turn after the other: Tasks of one process do not race each other for the last slot;
- every turn has snapshots of its own, and within it a decision sees the slots that those before it have chosen;
- within a turn they are decided in the order of `domain.shares`, whoever was claimed first (PRIO-1, PRIO-2);
- a lease that nobody came to hold, because its Task's step was ended meanwhile, is given back.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter

from libs.telemetry import names
from libs.telemetry.spans import annotate, span
from services.routing.app import meters
from services.routing.app.desk import Desk
from services.routing.app.gather import Gathered, Views, gather, look
from services.routing.app.give_back import release
from services.routing.app.tenant_runs import room_for
from services.routing.domain.calls.sizing import IN_TOKENS, digest_of, tokens_to_reserve
from services.routing.domain.decision import Decision, HealthView, Inputs, Verdict
from services.routing.domain.selection import select
from services.routing.domain.shares import turn_of
from services.routing.domain.task import Task
from services.routing.domain.tenant_quotas import Room
from services.routing.ports import Refused, Reserved


@dataclass(frozen=True, slots=True)
class Placed:
    """A decision and what became of it; `lease` is there when it was reserved, `refused` when it was not."""

    gathered: Gathered
    decision: Decision
    attempt_id: str = ""
    lease: Reserved | None = None
    refused: Refused | None = None


async def place(desk: Desk, task: Task) -> Placed:
    """Snapshot, select, reserve, together with whoever else waits. Faults where somebody who is asked is away."""
    with span(names.SPAN_SELECT, {names.MODEL: task.request.model}):
        asked = desk.errands.begin(desk.turn.begin((desk, task)))  # a process that stops waits for it
        try:
            placed = await asyncio.shield(asked)
        except asyncio.CancelledError:
            asked.add_done_callback(lambda done: _nobody_came(desk, task, done))
            raise
        annotate({names.VERDICT: placed.decision.verdict.value})
        return placed


async def place_all(asks: Sequence[tuple[Desk, Task]]) -> Sequence[Placed | Exception]:
    """One turn; the answers stand in the order of the asks."""
    desk = asks[0][0]
    views = await look(desk)
    found = await asyncio.gather(*(gather(desk, task, views) for _, task in asks), return_exceptions=True)
    room = await room_for(desk, (task for _, task in asks))
    turns = [turn_of(task) for _, task in asks]
    order = desk.usher.shares.order(turns)
    decided = _decided([asks[place] for place in order], [found[place] for place in order], views, room)
    placed = await asyncio.gather(*(_placed(desk, item) for item in decided))
    for place, item in zip(order, placed, strict=True):
        if isinstance(item, Placed) and item.lease is not None:
            desk.usher.shares.placed(turns[place])
    answers = dict(zip(order, placed, strict=True))
    return [answers[place] for place in range(len(asks))]


def _decided(
    asks: Sequence[tuple[Desk, Task]], found: Sequence[Gathered | BaseException], views: Views, room: Room
) -> list[Placed | Exception]:
    """Decisions, each with the slots and Runs counted that the turn has chosen by then."""
    decided: list[Placed | Exception] = []
    for (desk, task), item in zip(asks, found, strict=True):
        if isinstance(item, Exception):
            decided.append(item)
        elif isinstance(item, BaseException):
            raise item
        elif item.inputs is None:
            decided.append(Placed(item, Decision(Verdict.WAIT, (), waiting_reason=item.missing)))
        elif wait := room.refusal(task):
            decided.append(Placed(Gathered(None, wait), Decision(Verdict.WAIT, (), waiting_reason=wait)))
        else:
            inputs = views.seen_by(item.inputs)
            begun_s = perf_counter()
            try:
                decision = select(inputs)
            except Exception as error:
                decided.append(error)  # a bug over these inputs is this Task's; the others go on
                continue
            meters.selected(task.request.model, decision, perf_counter() - begun_s)
            if decision.verdict is Verdict.CHOSEN:
                chosen = inputs.supplies[decision.chosen]
                views.occupy(chosen, inputs.channels[chosen.channel], _tokens(inputs, decision))
                room.enter(task)
                desk.runs.choose(task)
            decided.append(Placed(replace(item, inputs=inputs), decision))
    return decided


async def _placed(desk: Desk, item: Placed | Exception) -> Placed | Exception:
    if isinstance(item, Exception) or item.gathered.inputs is None or item.decision.verdict is not Verdict.CHOSEN:
        return item
    channel = item.gathered.inputs.supplies[item.decision.chosen].channel
    attempt_id, sending = desk.world.ids.ulid(), desk.sending.under_way(channel)
    if sending >= desk.sending.most:
        return replace(item, refused=Refused(f"channel {channel}", "submissions", desk.sending.most, sending))
    try:
        answer = await _reserve(desk, attempt_id, item.gathered.inputs, item.decision)
    except Exception as error:
        return error  # this Task's alone, a bug too: the others of the turn keep their slots
    if isinstance(answer, Reserved):
        return replace(item, attempt_id=attempt_id, lease=answer)
    return replace(item, attempt_id=attempt_id, refused=answer)


async def _reserve(desk: Desk, attempt_id: str, inputs: Inputs, decision: Decision) -> Reserved | Refused:
    """The Attempt's id is the lease's id. An answer that was lost may have been a lease: it is given back."""
    supply = inputs.supplies[decision.chosen]
    channel_health = inputs.channel_health.get(supply.channel, HealthView())
    supply_health = inputs.supply_health.get(supply.id, HealthView())
    try:
        tokens = _tokens(inputs, decision)
        return await desk.capacity.reserve(attempt_id, supply, channel_health, supply_health, tokens=tokens)
    except (Exception, asyncio.CancelledError):
        await release(desk, attempt_id)
        raise


def _tokens(inputs: Inputs, decision: Decision) -> int:
    """The most that the Attempt may take of windows of tokens, as a call of the same input would (CAP-6)."""
    kind = inputs.model.kind
    if kind not in IN_TOKENS:
        return 0
    return tokens_to_reserve(kind, digest_of(kind, decision.input), inputs.supplies[decision.chosen])


def _nobody_came(desk: Desk, task: Task, done: "asyncio.Future[Placed]") -> None:
    desk.runs.leave(task)
    if not done.cancelled() and done.exception() is None and (lease := done.result().lease) is not None:
        desk.errands.begin(release(desk, lease.lease_id))
