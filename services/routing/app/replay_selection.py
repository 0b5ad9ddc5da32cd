"""A Task's saved rounds decided again, from their inputs alone (SEL-22)."""

from collections.abc import Sequence

from libs.faults.fault import Fault
from services.routing.app.desk import Desk
from services.routing.app.read_tasks import list_rounds
from services.routing.domain.replaying import Replay, replay_record
from services.routing.domain.rounds import SelectionRound

Replays = tuple[tuple[SelectionRound, Replay], ...]


async def replay_selection(desk: Desk, task_id: str, number: int = 0, tenant: str = "") -> Replays:
    """Every round with its replay, oldest first; only round `number` where it is not 0. Fault `not_found`."""
    return replayed(f"task {task_id!r}", await list_rounds(desk, task_id, tenant), number)


def replayed(whose: str, rounds: Sequence[SelectionRound], number: int) -> Replays:
    """As `replay_selection`, of rounds that are read; `whose` names them where there is no round of that number."""
    wanted = [item for item in rounds if number in (0, item.round)]
    if number and not wanted:
        raise Fault.of("not_found", f"{whose} has no selection round {number}")
    return tuple((item, replay_record(item.record)) for item in wanted)
