"""A production that cannot be is refused at once, with everything that is known to be wrong with it (RUN-3)."""

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from libs.faults.fault import Fault
from services.runs.app.judge_orders import ASKING_AT_ONCE
from services.runs.domain.run import Order
from services.runs.domain.task_view import Estimate
from tests.unit.runs.fakes import FakeRouting
from tests.unit.runs.house import House
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


def many(count: int, kinds: int) -> dict[str, Any]:
    """A document of so many nodes that generate, of which no more than `kinds` differ in what they ask for."""
    return production(
        *({**FRAME, "id": f"n{n}", "input": {"prompt": f"boat {n % kinds}"}} for n in range(count)),
        budget={"currency": "CNY", "cost": "900.00"},
    )


@dataclass
class Counting(FakeRouting):
    """Counts who is asked at the same time; the question for `boat 0` finds nobody, if `failing`."""

    failing: bool = False
    open: int = 0
    most: int = 0

    async def validate(self, tenant: str, order: Order, supply: str = "", run_id: str = "") -> Estimate:
        """As ever, after a turn of the event loop."""
        self.open += 1
        self.most = max(self.most, self.open)
        await asyncio.sleep(0)
        self.open -= 1
        if self.failing and order.input["prompt"] == "boat 0":
            self.asked.append(order)
            raise Fault.of("peer_unavailable")
        return await super().validate(tenant, order, supply)


@pytest.mark.parametrize("kinds", [1, 7, 200])
async def test_a_large_document_asks_each_question_once(kinds: int) -> None:
    """RUN-3: what is asked alike is one question, whatever the nodes are called, and questions go out together: the
    longest document is read in the time that its caller waits."""
    home = House(Counting())
    await home.produce(many(200, kinds))
    assert len(home.routing.asked) == kinds
    assert home.routing.most == min(kinds, ASKING_AT_ONCE)


async def test_every_node_that_asks_alike_is_told() -> None:
    """RUN-3: one answer is told at each pointer that it is about, in the order of the document."""
    home = house()
    home.routing.unpriced.add("frame")
    with pytest.raises(Fault) as caught:
        await home.produce(many(150, 3))
    assert [error.pointer for error in caught.value.errors] == [f"/production/nodes/{n}/model" for n in range(150)]
    assert len(home.routing.asked) == 3


async def test_who_is_away_is_not_asked_on() -> None:
    """RUN-3: the Fault of whoever is away is the answer at once, unless something is known to be wrong; nothing is kept
    and the caller may come again."""
    home = House(Counting(failing=True))
    with pytest.raises(Fault) as caught:
        await home.produce(many(200, 200))
    assert caught.value.code == "peer_unavailable"
    assert len(home.routing.asked) <= ASKING_AT_ONCE
    home.routing.unpriced.add("frame")
    with pytest.raises(Fault) as caught:
        await home.produce(many(200, 200))
    assert caught.value.code == "validation_failed"
    assert await home.runs.page("a", [], None, "", 9) == []
