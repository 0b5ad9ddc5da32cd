"""The saved rounds of a synchronous call decided again, from their inputs alone (SEL-22)."""

from services.routing.app.calls.call_desk import CallDesk
from services.routing.app.calls.read_call import read_call
from services.routing.app.replay_selection import Replays, replayed


async def replay_call(desk: CallDesk, call_id: str, number: int = 0, tenant: str = "") -> Replays:
    """As `replay_selection`, of a call. What its catalogue revision fixes is put back from that revision first."""
    _, rounds = await read_call(desk, call_id, tenant)
    return replayed(f"call {call_id!r}", rounds, number)
