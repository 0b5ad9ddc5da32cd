"""Verification of Supplies that answer while the caller waits, over a scripted provider."""

import asyncio
from dataclasses import replace

from libs.faults.fault import Fault
from services.routing.app.calls.read_call import read_call
from services.routing.app.verify_supply import VerifySupply
from services.routing.domain.calls.call import CallState
from services.routing.domain.verification import Verification, VerificationState
from services.routing.store.catalog_memory import MemoryCatalogStore
from services.routing.store.verifications_memory import MemoryVerifications
from tests.unit.routing.call_stage import CallStage, Then, call_stage, chat_catalog, chat_supply
from tests.unit.routing.specimens import FakeSpecimens

NAME = "b/talk"


class House:
    """A stage of calls with the use-case on it."""

    def __init__(self) -> None:
        self.play: CallStage = call_stage(chat_catalog(chat_supply("a/talk"), chat_supply(NAME)))
        self.store = MemoryVerifications()
        self.verify = self.made_anew()

    def made_anew(self) -> VerifySupply:
        """The use-case of another process."""
        desk = self.play.tasks.desk
        return VerifySupply(desk, MemoryCatalogStore(), self.store, FakeSpecimens(), self.play.desk)

    async def verified(self, verification_id: str = "v", wait_s: float = 100.0) -> Verification:
        """The verification; time passes as long as it takes."""
        work = asyncio.ensure_future(self.verify(NAME, verification_id, wait_s))
        ended: Verification = await self.play.while_time_passes(work)
        return ended


async def test_a_call_to_that_supply_alone_is_its_evidence() -> None:
    """CAT-7: a chat supply is asked once, through a real call with its cost on record, and its words are read."""
    house = House()
    ended = await house.verified()
    assert ended.state is VerificationState.PASSED, ended
    (trial,) = ended.trials
    assert (house.play.provider.sent(NAME), house.play.provider.sent("a/talk")) == (1, 0)
    call, rounds = await read_call(house.play.desk, trial.call_id)
    assert (call.state, call.supply, call.cost) == (CallState.SUCCEEDED, NAME, trial.cost)
    assert len(rounds) == 1
    assert (await house.verified(), house.play.provider.sent(NAME)) == (ended, 1), "the same id pays once"


async def test_a_refusal_is_the_verdict() -> None:
    """CAT-7: what the supply answers with is the reason; no other supply is asked in its place, and none again."""
    house = House()
    house.play.script(NAME, Then(fault=Fault.of("provider_error", "the provider answered 500")))
    ended = await house.verified()
    assert ended.state is VerificationState.FAILED
    assert "the provider answered 500" in ended.trials[0].reasons[0]
    assert (house.play.provider.sent(NAME), house.play.provider.sent("a/talk")) == (1, 0)


async def test_whoever_leaves_ends_nothing() -> None:
    """CAT-7: the call is an errand: it ends and is judged though nobody waits, and is not made twice."""
    house = House()
    begun = await house.verify(NAME, "v", 0.0)
    assert begun.state is VerificationState.RUNNING
    assert (await house.verified()).state is VerificationState.PASSED
    assert house.play.provider.sent(NAME) == 1


async def test_an_answer_that_was_lost_is_not_guessed() -> None:
    """CAT-7: after the death of the process that made a call its answer is gone: no evidence, and no second payment."""
    house = House()
    made = await house.verified("w")
    (trial,) = made.trials
    begun = replace(made, id="v", state=VerificationState.RUNNING, finished_at=None)
    await house.store.add(replace(begun, trials=(replace(trial, state=VerificationState.RUNNING, cost=None),)))
    house.verify = house.made_anew()
    assert (await house.verified("v", 5.0)).state is VerificationState.RUNNING, "whoever made it may yet tell"
    house.play.clock.advance(100.0)
    ended = await house.verified("v")
    assert ended.state is VerificationState.FAILED
    assert ended.trials[0].reasons == ("its answer is not on record: verify the supply again",)
    assert house.play.provider.sent(NAME) == 1
