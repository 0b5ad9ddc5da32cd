"""Verification of a Supply over fakes: real Tasks under a steered clock."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from libs.faults.fault import Fault
from libs.kernel.money import Money
from services.routing.app.submit_task import Submission, check_task
from services.routing.app.verify_supply import VerifySupply
from services.routing.domain.admission import admit
from services.routing.domain.catalog import Admin
from services.routing.domain.regression import WORDS
from services.routing.domain.request import Request
from services.routing.domain.task import Failure, TaskState
from services.routing.domain.trial import trial_of
from services.routing.domain.verification import Verification, VerificationState
from services.routing.ports import Polled
from services.routing.store.catalog_memory import MemoryCatalogStore
from services.routing.store.verifications_memory import MemoryVerifications
from tests.unit.routing.call_stage import call_stage
from tests.unit.routing.dispatch_fakes import FILM, Stage, stage
from tests.unit.routing.dispatch_offers import catalog, supply
from tests.unit.routing.specimens import CLIP, PICTURE, FakeSpecimens

NAME = "b/clip"


class House:
    """A play with the use-case on it."""

    def __init__(self, **changes: Any) -> None:
        offered = catalog(supply("a/clip"), supply(NAME, **changes))
        self.play: Stage = stage(offers=offered)
        self.store = MemoryVerifications()
        self.specimens = FakeSpecimens()
        self.verify = VerifySupply(
            self.play.desk, MemoryCatalogStore(), self.store, self.specimens, call_stage(offered).desk
        )

    @property
    def sends(self) -> int:
        """How many submissions the provider has had."""
        return sum(1 for name, _ in self.play.provider.calls if name == "submit")

    async def verified(self, verification_id: str = "v") -> Verification:
        """The verification once the play has gone on for a while."""
        await self.verify(NAME, verification_id, 0.0)
        await self.play.pass_time(10)
        return await self.verify(NAME, verification_id, 0.0)


async def test_a_set_is_run_as_real_tasks_of_that_supply_alone() -> None:
    """CAT-7: each request of the set is one submission to this Supply, with its cost on record; then it is evidence."""
    house = House(capabilities={"duration_s": {"min": 1, "max": 15}, "features": ["first_frame"]})
    ended = await house.verified()
    assert (ended.state, ended.capability_version) == (VerificationState.PASSED, 1)
    assert [(trial.name, trial.reasons) for trial in ended.trials] == [("words", ()), ("first_frame", ())]
    assert ended.cost() == Money("CNY", Decimal(2))
    for trial in ended.trials:
        task = await house.play.desk.store.get(trial.task_id)
        assert task is not None
        (attempt,) = task.attempts
        assert (task.state, attempt.supply, attempt.cost) == (TaskState.SUCCEEDED, NAME, trial.cost)
        assert house.play.provider.sends(attempt.client_token) == 1
        assert attempt.input["prompt"] == WORDS
    assert ended.trials[1].input["first_frame"] == {"artifact": PICTURE}
    assert (await house.store.newest())[NAME] == ended


async def test_the_same_id_goes_on_and_another_begins_anew() -> None:
    """CAT-7: a verification that was asked for twice is one; what it has paid for is not paid again."""
    house = House()
    first = await house.verified()
    again = await house.verify(NAME, "v", 0.0)
    assert again == first
    assert house.sends == 1
    await house.verified("w")
    assert house.sends == 2
    with pytest.raises(Fault) as caught:
        await house.verify("a/clip", "v", 0.0)
    assert caught.value.code == "idempotency_conflict"


async def test_a_result_that_is_not_as_expected_fails() -> None:
    """CAT-7: a set fails with its reasons where a file is of another type or length, or cannot be read."""
    house = House()
    house.specimens.files[FILM.sha256] = replace(CLIP, duration_s=9.0)
    ended = await house.verified()
    assert ended.state is VerificationState.FAILED
    assert "lasts 9.00 s" in ended.trials[0].reasons[0]
    house.specimens.files[FILM.sha256] = "is broken or incomplete"
    assert "is broken or incomplete" in (await house.verified("w")).trials[0].reasons[0]


async def test_a_request_that_fails_at_the_provider_fails_the_set() -> None:
    """CAT-7: a failure of the job is the verdict, with its code, and no other Supply is tried."""
    house = House()
    house.play.provider.polls = [
        Polled("failed", failure=Failure("content", "request", False, "content_rejected", "no"))
    ]
    ended = await house.verified()
    assert (ended.state, ended.trials[0].reasons) == (VerificationState.FAILED, ("content_rejected: no",))
    assert house.sends == 1


async def test_a_supply_that_may_not_be_used_fails_at_the_deadline() -> None:
    """CAT-7: nothing is sent to a Supply that an operator has disabled, and the verification ends all the same."""
    house = House(admin=Admin.DISABLED)
    await house.verify(NAME, "v", 0.0)
    await house.play.pass_time(910, 5.0)
    ended = await house.verify(NAME, "v", 0.0)
    assert ended.state is VerificationState.FAILED
    assert house.sends == 0


async def test_what_is_not_there_is_not_verified() -> None:
    """CAT-7: an unknown Supply is not found, and nothing is kept."""
    house = House()
    with pytest.raises(Fault) as caught:
        await house.verify("x/none", "v", 0.0)
    assert caught.value.code == "not_found"
    assert await house.store.newest() == {}


async def test_callers_cannot_ask_for_a_trial() -> None:
    """CAT-3: the model of a trial is in no catalogue, so admission does not know it."""
    house = House()
    request = Request("t", trial_of(NAME), {"prompt": "x"})
    with pytest.raises(Fault) as caught:
        admit(await house.play.desk.catalog.current(), request)
    assert caught.value.code == "model_not_published"
    with pytest.raises(Fault) as refused:
        await check_task(house.play.desk, Submission("t1", request))
    assert refused.value.code == "model_not_published"
