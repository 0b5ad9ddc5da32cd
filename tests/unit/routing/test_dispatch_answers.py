"""How a lost answer comes back at a provider that honours our token as a key, and what is told of lost slots."""

import logging

import pytest

from libs.kernel.money import Money
from services.routing.app.keep_leases import keep_leases
from services.routing.domain.task import AttemptState, TaskState
from services.routing.ports import Polled, Reconciled
from services.routing.store.tasks_memory import MemoryTasks
from tests.unit.routing.dispatch_fakes import stage


async def test_the_same_key_again_brings_the_result_itself() -> None:
    """ATT-6: an answer that brings the finished work ends the Attempt as a success, in one write, paid for once."""
    play = stage()
    play.provider.answers["a/clip"] = [None]
    play.provider.verdicts = [
        Reconciled("unknown", "", "the key is in use"),
        Reconciled("accepted", "", "the same key again", play.provider.delivered()),
    ]
    await play.submit()
    await play.work()
    lost = (await play.task()).attempts[0]
    assert lost.state is AttemptState.SUBMISSION_UNCERTAIN
    await play.pass_time(3)
    assert (await play.task()).attempts[0].state is AttemptState.SUBMISSION_UNCERTAIN
    await play.pass_time(6)
    done = await play.task()
    (attempt,) = done.attempts
    assert (done.state, attempt.state) == (TaskState.SUCCEEDED, AttemptState.SUCCEEDED)
    assert attempt.accepted_at is not None
    assert done.result is not None
    assert done.result.artifacts
    assert done.spent == attempt.cost == Money("CNY", attempt.quote.amount)
    assert [name for name, _ in play.provider.calls] == ["submit", "reconcile", "reconcile"]
    assert play.capacity.live() == {}
    assert list(play.health.outcomes.values()) == [None]


async def test_only_slots_under_running_work_are_told_as_lost(caplog: pytest.LogCaptureFixture) -> None:
    """CAP-3: a slot that was given back while the renewal was on its way is no loss; one under a running job is."""

    class Overtaken(MemoryTasks):
        """The list is older than the renewal: an Attempt of it has ended since."""

        first = True

        async def live_leases(self) -> tuple[str, ...]:
            """With one more at the first look."""
            found, extra = await super().live_leases(), ("ended-meanwhile",) if self.first else ()
            self.first = False
            return (*found, *extra)

    play = stage(store=Overtaken())
    play.provider.polls = [Polled("running")] * 99
    await play.submit()
    await play.work()
    with caplog.at_level(logging.WARNING):
        await keep_leases(play.desk)
        assert _told(caplog) == []
        (lease,) = play.capacity.live()
        del play.capacity.leases[lease]
        await keep_leases(play.desk)
    assert _told(caplog) == [f"1 leases of running attempts have lapsed: {lease}"]


def _told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What routing said; asyncio may just then tell of what an earlier test left behind."""
    return [record.getMessage() for record in caplog.records if record.name.startswith("services.routing")]
