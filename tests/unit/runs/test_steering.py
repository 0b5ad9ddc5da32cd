"""A steering input is judged when it is accepted, where the node and its path are known."""

import pytest

from libs.faults.fault import Fault
from services.runs.app.command_run import steer_run
from services.runs.domain.run import Run
from tests.unit.runs.house import House, states
from tests.unit.runs.test_commands import steer
from tests.unit.runs.test_gates import CLIP, house, production, shots

FRAMED = {
    **CLIP,
    "needs": ["go"],
    "input": {"prompt": "a crane", "duration_s": 4},
    "consumes_steering": {"style": "input.prompt", "length": "input.duration_s"},
}


async def refused(home: House, run: Run, kind: str, **data: object) -> dict[str, str]:
    """What is told of an input that is not taken, by its pointer; and nothing of it is on record."""
    before = await home.events(run)
    with pytest.raises(Fault) as caught:
        await steer_run(home.desk, home.plans, "a", run.id, kind, data, "")
    assert caught.value.code == "validation_failed"
    assert await home.events(run) == before
    return {error.pointer: error.reason for error in caught.value.errors}


async def test_an_input_that_nobody_could_be_served_with_is_refused() -> None:
    """STEER-2, SEL-2: a value is held against the field of the model before it is on record, told by the member that
    brought it; what waits already is counted in, and what is fit is taken."""
    home = house()
    run = await home.carry(await home.produce(production({"id": "go", "kind": "gate"}, FRAMED)))
    told = await refused(home, run, "length", value=99)
    assert set(told) == {"/data/value"}
    assert told["/data/value"].startswith("needs 99 s, the model admits 15 s")
    assert "input.duration_s of clip" in told["/data/value"]
    await steer_run(home.desk, home.plans, "a", run.id, "length", {"value": 5}, "")
    assert home.routing.asked[-1].input == {"prompt": "a crane", "duration_s": 5}
    await steer(home, run)
    assert home.routing.asked[-1].input == {"prompt": "a crane at dusk", "duration_s": 5}


async def test_an_input_into_what_is_not_there_yet_is_judged_by_itself() -> None:
    """STEER-2: the items of a map are not known, the value that comes is; what lies within an expression waits."""
    home = house()
    given = {"prompt": "${item.prompt}", "duration_s": "${item.length}", "shots": "${item.shots}"}
    node = {**FRAMED, "input": given}
    node["consumes_steering"] = {**FRAMED["consumes_steering"], "deep": "input.shots.0.prompt"}
    map_ = {"id": "clips", "kind": "map", "needs": ["go"], "over": shots(2, length=4, shots=[{"prompt": "x"}])}
    map_["node"] = {name: node[name] for name in ("kind", "model", "input", "consumes_steering")}
    run = await home.carry(await home.produce(production({"id": "go", "kind": "gate"}, map_)))
    assert set(await refused(home, run, "length", value=99)) == {"/data/value"}
    await steer(home, run)
    assert home.routing.asked[-1].input == {"prompt": "at dusk"}
    await steer(home, run, kind="deep")
    assert len((await home.now(run)).steering) == 2


async def test_what_the_data_of_an_input_may_hold() -> None:
    """STEER-2, STEER-3: one text or one value, whoever takes it; whatever it is, if no node that may begin declares its
    kind; and unjudged while routing is away."""
    home = house()
    run = await home.carry(await home.produce(production(FRAMED | {"needs": []}, {"id": "end", "kind": "gate"})))
    assert states(run)["clip"] == "succeeded"
    assert set(await refused(home, run, "music", value=1, text="x", zzz=1)) == {"/data/zzz", "/data/text"}
    assert set(await refused(home, run, "music", text=7)) == {"/data/text"}
    assert set(await refused(home, run, "music")) == {"/data"}
    for kind in ("music", "length"):
        await steer_run(home.desk, home.plans, "a", run.id, kind, {"value": 99}, "")
    run = await home.carry(await home.produce(production({"id": "go", "kind": "gate"}, FRAMED)))
    home.routing.away = Fault.of("peer_unavailable", "routing is away")
    await steer_run(home.desk, home.plans, "a", run.id, "length", {"value": 99}, "")


async def test_what_was_wrong_before_is_not_told_of_an_input() -> None:
    """STEER-2: a model that is not published any more is no fault of what is said meanwhile."""
    home = house()
    run = await home.carry(await home.produce(production({"id": "go", "kind": "gate"}, FRAMED)))
    home.routing.unpriced.add("clip")
    await steer(home, run)
    assert len((await home.now(run)).steering) == 1
