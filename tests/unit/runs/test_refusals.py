"""A production that cannot be is refused at once, with everything that is known to be wrong with it (RUN-3)."""

import pytest

from libs.faults.fault import Fault
from tests.unit.runs.test_gates import CLIP, FRAME, GATE, fan_out, house, production, shots


async def test_what_can_never_run_is_refused_at_once() -> None:
    """RUN-3: a model that is not published, a field that it does not take, a node that nobody can price; all together,
    by JSON pointer, and nothing starts."""
    home = house()
    home.routing.unpriced.add("frame")
    long = {"kind": "generate", "model": "clip", "input": {"prompt": "${item.prompt}", "duration_s": 99}}
    bad = production({**CLIP, "model": "unknown"}, FRAME, GATE, {**fan_out(shots(2)), "node": long})
    with pytest.raises(Fault) as caught:
        await home.produce(bad)
    told = {error.pointer: error.reason for error in caught.value.errors}
    assert set(told) == {
        "/production/nodes/0/model",
        "/production/nodes/1/model",
        "/production/nodes/3/node/input/duration_s",
    }
    assert await home.runs.page("a", [], None, "", 9) == []


async def test_faults_do_not_come_in_instalments() -> None:
    """RUN-3: structure, models, prices and the budget above are one answer, whichever of them is wrong: what cannot be
    read keeps nobody from asking about what can, and what is told is not judged twice."""
    home = house()
    home.budgets.foreign = {"theirs"}
    reads = [{"text": {"contains": "SALE", "model": "unknown"}}]
    late = {"duration_s": 99, "prompt": "${nobody.output}", "seed": float("inf")}
    document = production(
        {**FRAME, "model": "unknown", "inptu": {}},
        {"id": "clip", "kind": "generate", "model": "clip", "input": {"duration_s": 99}, "checks": reads},
        {"id": "late", "kind": "generate", "model": "clip", "input": late},
        {"id": "lost", "kind": "wait"},
        {**GATE, "needs": ["nobody"]},
        budget={"currency": "CNY", "cost": "much", "parent": "theirs"},
    )
    with pytest.raises(Fault) as caught:
        await home.produce(document)
    assert [error.pointer.removeprefix("/production") for error in caught.value.errors] == [
        "/nodes/2/input/seed",
        "/nodes/0/inptu",
        "/nodes/3/kind",
        "/budget/cost",
        "/nodes/2/input/prompt",
        "/nodes/4/needs",
        "/budget/parent",
        "/nodes/0/model",
        "/nodes/1/input/duration_s",
        "/nodes/1/input/prompt",
        "/nodes/1/checks/0/text/model",
        "/nodes/2/input/duration_s",
    ]
    assert all(error.reason for error in caught.value.errors)
    assert all("seed" not in order.input for order in home.routing.asked)
    assert await home.runs.page("a", [], None, "", 9) == []


async def test_what_is_known_is_told_while_routing_is_away() -> None:
    """RUN-3: a document that is wrong by itself is refused though nobody tells of its models; a sound one waits."""
    home = house()
    home.routing.away = Fault.of("peer_unavailable", "routing is away")
    with pytest.raises(Fault, match="inptu"):
        await home.produce(production({**FRAME, "inptu": {}}))
    with pytest.raises(Fault, match="routing is away"):
        await home.produce(production(FRAME))
