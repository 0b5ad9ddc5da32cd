"""What a failed call says of its repetition, and what health hears of a try of unknown outcome."""

import pytest

from libs.faults.fault import Fault
from tests.contract.routing.test_calls_ends import BROKEN, CUT, house
from tests.unit.routing.call_stage import Then, chat_supply


@pytest.mark.parametrize(("fault", "retryable"), [(BROKEN, True), (CUT, False), (Fault.of("key_invalid", "no"), False)])
async def test_whether_a_repetition_is_of_use(fault: Fault, retryable: bool):
    """SYN-6, EDG-1: not where waiting mends nothing, nor of itself where a try may have been made and charged."""
    async with house(chat_supply("a/talk"), max_attempts=2) as play:
        play.script("a/talk", Then(fault), Then(fault))
        ended = await play.refused()
        assert (ended.code, ended.retryable) == ("retry_exhausted", retryable)


@pytest.mark.parametrize(
    ("evidence", "told"),
    [
        ("transport read_timeout", "provider_timeout"),
        ("status 200: the body (html) proves nothing", "malformed_reply"),
        ("status 502 of a gateway", "provider_error"),
    ],
)
async def test_health_is_told_what_came_in_the_place_of_an_answer(evidence: str, told: str):
    """HLT-8, ERR-1a: a try of unknown outcome is closed with its call, as what it looked like and nothing else."""
    async with house(chat_supply("a/talk")) as play:
        play.script("a/talk", Then(Fault.of("submission_unknown", "?", metadata={"evidence": evidence})))
        assert (await play.refused()).code == "retry_exhausted"
        await play.settled()
        assert {failure.code for failure in play.health.outcomes.values() if failure} == {told}
