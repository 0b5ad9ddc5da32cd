"""What an operator may say of an uncertain Attempt, and what not."""

import pytest

from libs.faults.fault import Fault
from services.routing.app.resolve_attempt import Resolution, resolve_attempt
from services.routing.domain.task import AttemptState
from services.routing.ports import Reconciled
from tests.unit.routing.dispatch_fakes import stage
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
