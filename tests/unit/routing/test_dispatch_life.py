"""The life of a Task over fakes: queued, submitted, polled, ended."""

from decimal import Decimal

from libs.kernel.money import Money
from services.routing.domain.task import AttemptState, TaskState
from tests.unit.routing.dispatch_fakes import FILM, stage


async def test_a_task_goes_from_the_queue_to_its_result():
    """SEL-13, SEL-14, SEL-15: reserved, intent durable, submitted once, polled, succeeded, all given back."""
    play = stage()
    await play.submit()
    await play.work()
    running = await play.task()
    assert running.state is TaskState.RUNNING
    assert running.attempts[0].state is AttemptState.ACCEPTED
    assert len(play.capacity.live()) == 1
    await play.pass_time(3)
    done = await play.task()
    assert done.state is TaskState.SUCCEEDED
    assert done.result is not None
    assert done.result.artifacts == (FILM,)
    attempt = done.attempts[0]
    assert attempt.reserved_at is not None
    assert attempt.submitted_at is not None
    assert done.spent == Money("CNY", Decimal(1)) == attempt.cost
    assert play.provider.sends(attempt.client_token) == 1
    assert play.capacity.live() == {}
    assert play.health.outcomes == {attempt.id: None}
    rounds = await play.desk.store.rounds("t1")
    assert [item.outcome for item in rounds] == ["reserved"]
