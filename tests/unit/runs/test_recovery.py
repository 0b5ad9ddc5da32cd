"""A finished scene, put back from what is kept of it."""

import pytest

from services.runs.domain.history import rebuilt, state_hash
from services.runs.domain.run import Run, RunState
from services.runs.store.codec import run_from_document, run_to_document
from tests.unit.runs.fakes import REFUSED
from tests.unit.runs.house import House
from tests.unit.runs.test_gates import CLIP, FRAME, GATE, house, production
from tests.unit.runs.test_productions import episode


async def scene(home: House) -> list[Run]:
    """Four Runs: an episode to its release, a mended dead letter, one that took another's result, a single one."""
    home.routing.script = {"frames/S03": [REFUSED]}
    whole = await home.carry(await home.produce(episode()))
    whole = await home.decide(whole, "approve")
    await home.redrive(whole, "frames/S03", input={"prompt": "a walk"})
    await home.decide(whole, "approve")
    for _ in range(2):
        run = await home.carry(await home.produce(production({**FRAME, "memo": True}, GATE, CLIP)))
        await home.decide(run, "approve")
    await home.carry(await home.create())
    return await home.runs.page("a", [], None, "", 100)


async def test_a_finished_scene_is_rebuilt_with_equal_hashes() -> None:
    """SLO-3, EVENT-3: from its events alone, and from a snapshot at any moment and the events after it, every Run of a
    finished scene has the hash that it had."""
    home = house()
    runs = await scene(home)
    assert [run.state for run in runs] == [RunState.SUCCEEDED] * 4
    for run in runs:
        events = await home.events(run)
        assert state_hash(rebuilt(events)) == state_hash(run)
        for cut in range(1, len(events), 7):
            before = rebuilt(events[:cut])
            snapshot = run_from_document(run_to_document(before), before.production)
            assert state_hash(snapshot) == state_hash(before)
            assert state_hash(rebuilt(events[cut:], snapshot)) == state_hash(run)


async def test_a_hole_between_snapshot_and_events_is_noticed() -> None:
    """SLO-3: events that do not continue a snapshot are refused, and another state has another hash."""
    home = house()
    run = await home.carry(await home.produce(production(FRAME)))
    events = await home.events(run)
    snapshot = rebuilt(events[:3])
    assert state_hash(snapshot) != state_hash(run)
    with pytest.raises(ValueError, match="follows"):
        rebuilt(events[4:], snapshot)
