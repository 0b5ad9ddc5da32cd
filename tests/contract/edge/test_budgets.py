"""Budgets over HTTP, with the real ledger behind."""

import asyncio
from typing import Any

from google.type.money_pb2 import Money

from pointsman.cost_quote.v1 import budget_pb2
from pointsman.cost_quote.v1 import budget_service_pb2 as pb
from pointsman.cost_quote.v1.budget_service_pb2_grpc import BudgetServiceStub
from tests.contract.edge.house import EdgeHouse

AT = "/v1/operator/budgets"
CALL_S = 10.0


async def hold(edge: EdgeHouse, hold_id: str, budget_id: str, cost: int) -> Any:
    """Take a Hold, as runs would."""
    stub: Any = BudgetServiceStub(edge.channels.to("cost_quote"))
    amounts = budget_pb2.Amounts(cost=Money(currency_code="CNY", units=cost), attempts=1)
    asked = pb.HoldRequest(hold_id=hold_id, budget_id=budget_id, amounts=amounts, subject="node a")
    return await stub.Hold(asked, timeout=CALL_S)


async def made(admin: Any, budget_id: str, **more: Any) -> dict[str, Any]:
    """A budget in yuan."""
    answer = await admin.post(AT, json={"id": budget_id, "level": "episode", "currency": "CNY", **more})
    assert answer.status_code == 201, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def test_the_tree_shows_what_is_spent_held_and_allowed(edge: EdgeHouse) -> None:
    """COST-9, CON-5: parents first, every figure by itself, null where nothing limits."""
    async with edge.admin as admin:
        hard = {"cost": "20.00", "attempts": 5}
        await made(admin, "p", hard=hard, soft={"cost": "8"}, value_class="hero", deadline_at="2026-02-01T00:00:00Z")
        await made(admin, "ep/1", parent="p")
        await hold(edge, "1", "ep/1", 9)
        listed = (await admin.get(AT)).json()
        assert [budget["id"] for budget in listed["budgets"]] == ["p", "ep/1"]
        parent, child = listed["budgets"]
        assert parent["hard"] == {"cost": {"currency": "CNY", "amount": "20.00"}, "attempts": 5, "review_minutes": None}
        assert child["held"] == {"cost": {"currency": "CNY", "amount": "9.00"}, "attempts": 1, "review_minutes": 0}
        assert parent["spent"]["cost"]["amount"] == "0.00"
        assert (child["parent"], parent["parent"], parent["value_class"]) == ("p", None, "hero")
        assert parent["soft_limit_at"] is not None
        assert (await admin.get(AT, params={"root": "ep/1"})).json()["budgets"] == [child]
        assert (await admin.get(f"{AT}/ep%2F1")).json() == child


async def test_limits_are_raised_with_a_reason(edge: EdgeHouse) -> None:
    """COST-10, COST-11: what is not named stays, the reason is on record, and a repeat under one key is one change; who
    asks whether the ledger adds up has all of it read."""
    async with edge.admin as admin:
        await made(admin, "ep/1", hard={"cost": "5", "attempts": 3}, soft={"cost": "4"})
        assert (await hold(edge, "1", "ep/1", 6)).refusal.dimension == "cost"
        change = {"hard": {"cost": "12.50"}, "reason": "Ann: the storm shot"}
        for _ in range(2):
            answer = await admin.post(f"{AT}/ep%2F1/limits", json=change, headers={"idempotency-key": "k"})
            assert answer.status_code == 200, answer.text
        assert answer.json()["hard"]["cost"]["amount"] == "12.50"
        assert (answer.json()["hard"]["attempts"], answer.json()["soft"]["cost"]["amount"]) == (3, "4.00")
        assert (await hold(edge, "1", "ep/1", 6)).HasField("hold")
        entries = (await admin.get(f"{AT}/ep%2F1/entries")).json()["entries"]
        assert [(entry["sequence"], entry["kind"]) for entry in entries] == [(1, "limit"), (2, "hold")]
        assert (entries[0]["reason"], entries[0]["hard"]["cost"]["amount"]) == ("Ann: the storm shot", "12.50")
        assert (entries[1]["hold"], entries[1]["held"]["cost"]["amount"]) == ("1", "6.00")
        later = (await admin.get(f"{AT}/ep%2F1/entries", params={"after": "1"})).json()["entries"]
        assert later == entries[1:]
        assert (await admin.get(f"{AT}:check")).json() == {"mismatches": []}
        assert edge.budgets.whole == [True]


async def test_two_operators_raise_two_dimensions_at_once(edge: EdgeHouse) -> None:
    """COST-10: neither is lost, whoever is written last."""
    async with edge.admin as admin:
        await made(admin, "ep/1", hard={"cost": "5", "attempts": 3})
        changes = ({"hard": {"cost": "12.50"}}, {"hard": {"attempts": 9}}, {"soft": {"cost": "4"}})
        told = (admin.post(f"{AT}/ep%2F1/limits", json={**change, "reason": "Ann"}) for change in changes)
        assert {answer.status_code for answer in await asyncio.gather(*told)} == {200}
        budget = (await admin.get(f"{AT}/ep%2F1")).json()
    assert (budget["hard"]["cost"]["amount"], budget["hard"]["attempts"]) == ("12.50", 9)
    assert budget["soft"]["cost"]["amount"] == "4.00"


async def test_bad_budgets_are_refused_by_their_place(edge: EdgeHouse) -> None:
    """EDG-2: each wrong field by its pointer; a missing budget is not found."""
    async with edge.admin as admin:
        answer = await admin.post(AT, json={"id": "x", "hard": {"cost": 5, "attempts": -1}, "colour": "red"})
        assert answer.status_code == 422
        assert [error["pointer"] for error in answer.json()["errors"]] == [
            "/colour",
            "/currency",
            "/hard/attempts",
            "/hard/cost",
            "/level",
        ]
        answer = await admin.post(AT, json={"id": "x", "level": "shot", "parent": "nobody"})
        assert answer.json()["errors"][0]["pointer"] == "/parent"
        await made(admin, "b")
        for change, pointer in (({"hard": {"cost": "1"}}, "/reason"), ({"reason": "Ann"}, "")):
            answer = await admin.post(f"{AT}/b/limits", json=change)
            assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, pointer)
        assert (await admin.get(f"{AT}/nobody")).status_code == 404
        answer = await admin.post(AT, json={"id": "b", "level": "shot", "currency": "CNY"})
        assert (answer.status_code, answer.json()["code"]) == (409, "already_exists")


async def test_all_that_is_wrong_with_a_budget_is_one_answer(edge: EdgeHouse) -> None:
    """EDG-2, COST-9: its own words, its limits beside each other, its parent; and an id that the ledger would look for
    itself, that of a tenant's period or of a production, is nobody's to take."""
    bad = {
        "id": "tenant:a:day:2026-12-02:CNY",
        "level": "",
        "parent": "nobody",
        "currency": "cny",
        "hard": {"cost": "-1", "attempts": 2},
        "soft": {"attempts": 3},
    }
    async with edge.admin as admin:
        answer = await admin.post(AT, json=bad)
        assert answer.status_code == 422
        told = [error["pointer"] for error in answer.json()["errors"]]
        assert told == ["/currency", "/hard/cost", "/id", "/level", "/parent", "/soft/attempts"]
        own = await admin.post(AT, json={"id": "run:x", "level": "shot", "currency": "CNY"})
        assert [error["pointer"] for error in own.json()["errors"]] == ["/id"]
        assert (await admin.get(AT)).json()["budgets"] == []
        for path in (AT, "/v1/operator/keys"):
            answer = await admin.get(path, params={"page_token": "garbage"})
            assert (answer.status_code, answer.json()["code"]) == (400, "malformed_request")


async def test_budgets_are_the_operators_alone(edge: EdgeHouse) -> None:
    """AUTH-1: a tenant's key reads no budget and makes none."""
    async with await edge.user() as client:
        assert (await client.get(AT)).status_code == 403
        assert (await client.post(AT, json={"id": "x", "level": "shot"})).status_code == 403
