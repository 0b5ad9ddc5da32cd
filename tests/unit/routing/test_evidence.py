"""What evidence does to the publish gate, and how the catalogue tells of it."""

from dataclasses import replace

import pytest

from libs.faults.fault import Fault
from services.routing.app.apply_catalog import apply_catalog
from services.routing.app.present_objects import present_objects
from services.routing.app.publish_model import publish_model
from services.routing.app.read_objects import list_objects
from services.routing.domain.catalog_file import ObjectKind
from services.routing.domain.verification import Trial, Verification, VerificationState
from services.routing.store.verifications_memory import MemoryVerifications
from tests.unit.routing.catalog_market import NOW, StillClock, edited, new_desk


@pytest.fixture
def clock() -> StillClock:
    """Time that stands."""
    return StillClock()


def evidence(supply: str, version: int, state: VerificationState = VerificationState.PASSED) -> Verification:
    """A verification that has ended."""
    trial = Trial("words", "t", {}, {}, state, ("lasts 1 s",) if state is VerificationState.FAILED else ())
    return Verification(f"{supply} {version} {state}", supply, "seedance", version, NOW).settled((trial,), NOW)


def unwaived(value, version: int = 1) -> None:
    """The fallback needs evidence, at that capability version."""
    supply = value["supplies"][1]
    for name in ("evidence", "evidence_reason"):
        supply.pop(name)
    supply["capability_version"] = version


async def test_evidence_opens_a_model_and_ends_with_the_capability_version(clock: StillClock):
    """CAT-7: the gate takes a passed verification for a waiver; another capability version closes the model again."""
    kept = MemoryVerifications()
    desk = replace(new_desk(clock), verifications=kept)
    name = "other/seedance"

    async def open_now(version: int = 1) -> bool:
        plan = await apply_catalog(desk, edited(lambda value: unwaived(value, version)), merge=False)
        return plan.catalog.models["seedance-2.0-933"].published

    assert not await open_now()
    await kept.add(evidence(name, 1, VerificationState.FAILED))
    with pytest.raises(Fault) as caught:
        await publish_model(desk, "seedance-2.0-933")
    assert "failed its verification (words: lasts 1 s)" in caught.value.message
    await kept.add(evidence(name, 1))
    assert (await publish_model(desk, "seedance-2.0-933")).published
    assert await open_now()
    assert not await open_now(version=2)
    with pytest.raises(Fault) as stale:
        await publish_model(desk, "seedance-2.0-933")
    assert "has that of capability version 1, the supply is at 2" in stale.value.message
    await kept.add(evidence(name, 2))
    assert (await publish_model(desk, "seedance-2.0-933")).published


async def test_a_list_tells_evidence_and_why_a_model_is_closed(clock: StillClock):
    """CAT-3, CAT-7: whoever lists the catalogue sees each supply's evidence and every reason against a model."""
    kept = MemoryVerifications()
    desk = replace(new_desk(clock), verifications=kept)
    await apply_catalog(desk, edited(unwaived, lambda value: value["models"][1].update(published=False)), merge=False)
    page, _ = await list_objects(desk.store, None, False, 100, "")
    shown = {item.item.id: item for item in await present_objects(desk, page)}
    assert shown["other/seedance"].evidence == "none"
    assert shown["other/seedance-900"].evidence == "waived: compared by eye"
    assert "needs evidence and has none" in shown["seedance-2.0-933"].reasons[0]
    assert shown["pictures"].reasons == ("published: it passes the publish gate; publish the model to open it",)
    assert shown["ark-main"].reasons == ()
    await kept.add(evidence("other/seedance", 1))
    only, _ = await list_objects(desk.store, ObjectKind.SUPPLY, False, 100, "")
    told = {item.item.id: item.evidence for item in await present_objects(desk, only)}
    assert told["other/seedance"] == "verified 2026-11-29 12:00 UTC, capability version 1"
