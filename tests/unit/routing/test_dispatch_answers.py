"""How a lost answer comes back at a provider that honours our token as a key: with the work itself."""

from libs.kernel.money import Money
from services.routing.domain.task import AttemptState, TaskState
from services.routing.ports import Reconciled
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
