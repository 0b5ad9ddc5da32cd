"""Replays and alternative histories over HTTP."""

from datetime import timedelta

import pytest

from libs.rpc.values import time_from_proto
from tests.contract.edge.house import EdgeHouse
from tests.contract.edge.test_problems import check

ASKED = {"policy": "order: cost_first\n", "since_s": 3600}


async def test_a_task_is_replayed(edge: EdgeHouse) -> None:
    """SEL-22: every round with whether it is identical, and the first difference; the whole is only if all are."""
    edge.routing.add("t1")
    async with await edge.user() as client:
        found = (await client.get("/v1/tasks/t1/replay")).json()
        check(await client.get("/v1/tasks/t2/replay"), 404, "not_found")
    assert (found["task_id"], found["identical"]) == ("t1", False)
    assert found["rounds"][0] == {
        "round": 1,
        "identical": True,
        "difference": None,
        "decision_digest": "0" * 64,
        "decided_at": "2026-01-01T12:00:00Z",
    }
    assert found["rounds"][1]["difference"] == {"pointer": "/chosen", "recorded": '"b/x"', "replayed": None}


async def test_a_foreign_task_is_not_replayed(edge: EdgeHouse) -> None:
    """AUTH-1, SEL-22: whoever may not see a task sees no replay of it; operators see every tenant's."""
    edge.routing.add("t1", "somebody")
    async with await edge.user() as client, edge.admin as admin:
        check(await client.get("/v1/tasks/t1/replay"), 404, "not_found")
        assert (await admin.get("/v1/tasks/t1/replay")).status_code == 200


async def test_a_call_is_replayed(edge: EdgeHouse) -> None:
    """SEL-22, AUTH-1: a synchronous call's rounds as a task's; a foreign or missing call is not found."""
    async with await edge.user("studio", "invoke") as client, await edge.user("other", "invoke") as stranger:
        chat = {"model": "talk", "messages": [{"role": "user", "content": "Hello."}]}
        call_id = (await client.post("/v1/chat/completions", json=chat)).headers["pointsman-call"]
        found = (await client.get(f"/v1/calls/{call_id}/replay")).json()
        check(await stranger.get(f"/v1/calls/{call_id}/replay"), 404, "not_found")
        check(await client.get("/v1/calls/nobody/replay"), 404, "not_found")
    assert (found["call_id"], found["identical"], len(found["rounds"])) == (call_id, False, 2)
    assert found["rounds"][0]["identical"]


async def test_history_under_an_alternative(edge: EdgeHouse) -> None:
    """SEL-23: moves, cost and success before and after, examples with their tasks; a second page tells no number."""
    async with edge.admin as admin:
        first = (await admin.post("/v1/operator/whatif?page_size=50", json={**ASKED, "model": "clip"})).json()
        second = (await admin.post("/v1/operator/whatif?page_token=next", json=ASKED)).json()
    totals = {"chosen": 1, "waiting": 0, "failed": 0}
    before = {**totals, "expected_cost": [{"currency": "CNY", "amount": "6.00"}], "expected_successes": 0.95}
    after = {**totals, "expected_cost": [{"currency": "CNY", "amount": "5.00"}], "expected_successes": 0.8}
    moved = {"model": "clip", "from_choice": "b/x", "to_choice": "c/y"}
    assert first == {
        "decided": 1,
        "untouched": 0,
        "refused": 0,
        "unreadable": 0,
        "changed": 1,
        "totals": {"before": before, "after": after},
        "shared": {"before": before, "after": after},
        "moves": [{**moved, "count": 1}],
        "examples": [
            {
                "task_id": "t1",
                "round": 1,
                **moved,
                "quote_before": {"currency": "CNY", "amount": "6.00"},
                "quote_after": {"currency": "CNY", "amount": "5.00"},
                "reason": "cheaper",
            }
        ],
        "rounds": 2,
        "next_page_token": "next",
    }
    assert (second["rounds"], second["next_page_token"]) == (None, "")
    sent, again = edge.routing.supposed
    assert (sent.policy_yaml, sent.model, sent.page_size) == (ASKED["policy"], "clip", 50)
    assert time_from_proto(sent.since_time) == edge.clock.now() - timedelta(hours=1)
    assert again.page_token == "next"


@pytest.mark.parametrize("kind", ["policy", "prices", "catalog"])
async def test_each_sort_of_alternative_is_handed_on(edge: EdgeHouse, kind: str) -> None:
    """SEL-23: the text goes to routing as it is."""
    async with edge.admin as admin:
        assert (await admin.post("/v1/operator/whatif", json={kind: "a: b", "since_s": 1})).status_code == 200
    assert edge.routing.supposed[0].WhichOneof("alternative") == f"{kind}_yaml"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"since_s": 60},
        {"policy": "a: b"},
        {"policy": "a: b", "prices": "a: b", "since_s": 60},
        {**ASKED, "since_s": 0},
        {**ASKED, "since_s": "24h"},
        {**ASKED, "more": 1},
        {"policy": " ", "since_s": 60},
    ],
)
async def test_what_cannot_be_supposed_is_refused(edge: EdgeHouse, body: dict[str, object]) -> None:
    """SEL-23, EDG-1: exactly one alternative, a stretch of history, nothing else."""
    async with edge.admin as admin:
        check(await admin.post("/v1/operator/whatif", json=body), 422, "validation_failed")
    assert edge.routing.supposed == []


async def test_only_operators_suppose(edge: EdgeHouse) -> None:
    """AUTH-1: history is every tenant's, so a user's key is refused."""
    async with await edge.user() as client:
        check(await client.post("/v1/operator/whatif", json=ASKED), 403, "forbidden")
