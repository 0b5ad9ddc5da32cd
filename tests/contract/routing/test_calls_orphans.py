"""How the past is looked through for calls whose process died (ATT-7)."""

from dataclasses import replace
from datetime import datetime, timedelta

from libs.faults.fault import Fault
from services.routing.app.calls.end_orphans import LAG_S, EndOrphans
from services.routing.domain.calls.call import Call
from services.routing.store.calls_memory import MemoryCalls
from tests.unit.routing.call_stage import call_stage


class Looked(MemoryCalls):
    """Notes which stretches of time were looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.stretches: list[tuple[datetime, datetime]] = []

    async def overdue(self, since: datetime, until: datetime, count: int) -> tuple[Call, ...]:
        """See the port."""
        self.stretches.append((since, until))
        return await super().overdue(since, until, count)


async def test_a_quiet_week_is_looked_through_in_a_few_steps():
    """ATT-7: without a gap, from what is still kept up to the present."""
    play, looked = call_stage(), Looked()
    ends = EndOrphans(replace(play.desk, store=looked))
    while await ends():
        pass
    begins, ends_at = zip(*looked.stretches, strict=True)
    assert begins[1:] == ends_at[:-1]
    now = play.desk.now()
    assert (begins[0], ends_at[-1]) == (now - timedelta(days=7), now - timedelta(seconds=LAG_S))
    assert len(looked.stretches) < 10


class Busy(MemoryCalls):
    """Calls came in the last two days: more than an hour of them is more than it can look through in time."""

    def __init__(self, since: datetime) -> None:
        super().__init__()
        self.since = since

    async def overdue(self, since: datetime, until: datetime, count: int) -> tuple[Call, ...]:
        """See the port."""
        if until > self.since and until - since > timedelta(hours=1):
            raise Fault.of("governance_backend_down", "canceling statement due to statement timeout")
        return await super().overdue(since, until, count)


async def test_a_stretch_that_is_too_long_to_look_through_is_looked_at_in_shorter_ones():
    """ATT-7: else all orphans behind quiet days would stay open for ever."""
    play = call_stage()
    ends, more, failed = EndOrphans(replace(play.desk, store=Busy(play.desk.now() - timedelta(days=2)))), True, 0
    while more and failed < 100:
        try:
            more = await ends()
        except Fault:
            failed += 1
    assert not more
