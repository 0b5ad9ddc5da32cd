"""Why a Task went where it went: the four steps, the story, and the health events behind refused Supplies (SEL-24)."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from libs.faults.fault import Fault
from services.routing.app.desk import Desk
from services.routing.app.present_reason import with_present_reason
from services.routing.app.read_tasks import get_task
from services.routing.domain.refusals import HealthCause, Refusal, refusals
from services.routing.domain.selection_record import recorded_decision
from services.routing.domain.story import tell

MOST = 64
"""Health is asked about so many states of one Task at most, the newest first."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The steps of the last round, the story in sentences, and each refusal with its cause, None where unknown."""

    steps: tuple[str, ...]
    story: tuple[str, ...]
    refusals: tuple[tuple[Refusal, HealthCause | None], ...]


async def explain_task(desk: Desk, task_id: str) -> Explanation:
    """Fault `not_found`. While health is away, refusals are told without their causes."""
    task = await with_present_reason(desk, await get_task(desk, task_id))
    rounds = await desk.store.rounds(task_id)
    steps = recorded_decision(rounds[-1].record).steps if rounds else ()
    return Explanation(steps, tell(task, rounds), await _with_causes(desk, refusals(rounds)))


async def _with_causes(desk: Desk, found: Sequence[Refusal]) -> tuple[tuple[Refusal, HealthCause | None], ...]:
    states = dict.fromkeys(_state(item) for item in reversed(found))
    asked = [state for state in states if state[2]][:MOST]  # revision 0: never declared, so nothing is known of it
    known = dict(zip(asked, await asyncio.gather(*(_cause(desk, *state) for state in asked)), strict=True))
    return tuple((item, known.get(_state(item))) for item in found)


def _state(item: Refusal) -> tuple[str, str, int]:
    return item.sort, item.name, item.view.revision


async def _cause(desk: Desk, sort: str, name: str, revision: int) -> HealthCause | None:
    try:
        return await desk.health.cause_of(sort, name, revision)
    except Fault:
        return None
