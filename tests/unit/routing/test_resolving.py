"""What an operator may say of an uncertain Attempt, and what not."""

import pytest

from libs.faults.fault import Fault
from services.routing.app.resolve_attempt import Resolution, resolve_attempt
from services.routing.domain.task import AttemptState, TaskState
from services.routing.ports import Reconciled
from tests.unit.routing.dispatch_fakes import Stage, stage
from tests.unit.routing.dispatch_offers import catalog, supply


async def test_a_job_is_given_to_one_attempt_alone():
    """ATT-6: the id of another Attempt's job is a conflict, and the doubt stays: one result is nobody else's."""
    play = stage(offers=catalog(supply("a/clip")))
    play.provider.answers["a/clip"] = [None, None]
    play.provider.verdicts = [Reconciled("unknown", "", "not listed yet")] * 99
    for name in ("t1", "t2"):
        await play.submit(name)
    await play.work()
    first, second = [(await play.task(name)).attempts[0] for name in ("t1", "t2")]
    await resolve_attempt(play.desk, Resolution(first.id, "accepted", "job-1"))
    with pytest.raises(Fault) as refused:
        await resolve_attempt(play.desk, Resolution(second.id, "accepted", "job-1"))
    assert refused.value.code == "conflict"
    assert (await play.task("t2")).attempts[0].state is AttemptState.SUBMISSION_UNCERTAIN


UNKNOWN_JOB = Fault.of("poll_failed", provider_message="no video 'video_nope'", metadata={"reason": "task_lost"})
AWAY = Fault.of("poll_failed", metadata={"reason": "provider_timeout"})


async def uncertain(**policy: float) -> tuple[Stage, str]:
    """A submission whose answer was lost and of which the records tell nothing; the stage and the Attempt's id."""
    play = stage(offers=catalog(supply("a/clip"), policy=policy or None))
    play.provider.answers["a/clip"] = [None]
    play.provider.verdicts = [Reconciled("unknown", "", "not listed yet")] * 99
    await play.submit()
    await play.work()
    return play, (await play.task()).attempts[0].id


async def test_an_id_that_the_provider_does_not_know_is_not_believed():
    """ATT-6: one poll before an operator's id is believed; "no such job" refuses the word by its field."""
    play, attempt_id = await uncertain()
    play.provider.polls = [UNKNOWN_JOB]
    with pytest.raises(Fault) as refused:
        await resolve_attempt(play.desk, Resolution(attempt_id, "accepted", "video_nope"))
    assert refused.value.code == "validation_failed"
    (error,) = refused.value.errors
    assert error.pointer == "/provider_task_id"
    assert "a/clip" in error.reason
    assert "no video 'video_nope'" in error.reason
    assert (await play.task()).attempts[0].state is AttemptState.SUBMISSION_UNCERTAIN


async def test_neither_is_it_after_the_end():
    """ATT-6, COST-12: nothing is booked for a job that nobody has, and the right word is still to be said."""
    play, attempt_id = await uncertain(uncertain_deadline_s=30.0)
    await play.pass_time(31)
    play.provider.polls = [UNKNOWN_JOB]
    with pytest.raises(Fault):
        await resolve_attempt(play.desk, Resolution(attempt_id, "accepted", "video_nope"))
    assert (await play.task()).attempts[0].state is AttemptState.UNRESOLVED
    after = await resolve_attempt(play.desk, Resolution(attempt_id, "accepted", "job-1"))
    assert after.spent == after.attempts[0].quote


async def test_a_word_is_taken_where_the_provider_cannot_be_asked():
    """ATT-6: it is taken, and the Task says that nobody looked."""
    play, attempt_id = await uncertain()
    play.provider.polls = [AWAY]
    after = await resolve_attempt(play.desk, Resolution(attempt_id, "accepted", "job-1"))
    assert after.attempts[0].state is AttemptState.ACCEPTED
    assert "a/clip could not be asked (poll_failed)" in after.waiting_reason


@pytest.mark.parametrize(
    "second", [("accepted", "job-right"), ("not_accepted", "")], ids=["another id", "none after all"]
)
async def test_a_slip_is_mended_while_nothing_was_heard_under_it(second: tuple[str, str]):
    """ATT-6: polls under the first id fail; a second word is taken, and the Task ends with its result and slot back."""
    play, attempt_id = await uncertain()
    play.provider.polls = [AWAY, *[UNKNOWN_JOB] * 2]
    await resolve_attempt(play.desk, Resolution(attempt_id, "accepted", "job-wrong"))
    while play.provider.polls:
        await play.pass_time(1)
    after = await resolve_attempt(play.desk, Resolution(attempt_id, *second))
    assert after.attempts[0].provider_task_id == (second[1] or "job-wrong")
    await play.pass_time(10)
    assert (await play.task()).state is TaskState.SUCCEEDED
    assert not play.capacity.live()


async def test_a_job_that_was_seen_is_past_doubt():
    """ATT-6: once a poll was answered under the id, another word is a conflict."""
    play, attempt_id = await uncertain()
    await resolve_attempt(play.desk, Resolution(attempt_id, "accepted", "job-1"))
    with pytest.raises(Fault) as refused:
        await resolve_attempt(play.desk, Resolution(attempt_id, "accepted", "job-2"))
    assert refused.value.code == "conflict"
