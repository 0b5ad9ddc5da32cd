"""Money of Runs, through HTTP, over a real ledger."""

import asyncio
from collections import Counter
from decimal import Decimal
from pathlib import Path

import httpx2

from libs.blobs.local import LocalBlobs
from tests.support.filming import FilmRouting
from tests.support.front import Replica, front
from tests.support.visitor import until

AT_ONCE = 200


async def test_two_hundred_claims_on_a_budget_for_seven(pg_url: str, tmp_path: Path) -> None:
    """COST-9, COST-11: of two hundred Runs at two replicas exactly seven find money; the others say what refused."""
    async with front(pg_url, tmp_path, replicas=2) as (one, two), one.visitor() as client:
        order = {"id": "week-1", "level": "project", "currency": "CNY", "hard": {"cost": "7.00"}}
        assert (await client.post("/v1/operator/budgets", json=order)).status_code == 201
        made = await asyncio.gather(*(_ask(replica) for replica in (one, two) for _ in range(AT_ONCE // 2)))
        runs = await until(lambda: _all(one, made), _settled, within_s=60)
        told = Counter((run["status"], (run["error"] or {}).get("code")) for run in runs)
        assert told == {("running", None): 7, ("failed", "budget_exhausted"): AT_ONCE - 7}
        budget = (await client.get("/v1/operator/budgets/week-1")).json()
        assert Decimal(budget["held"]["cost"]["amount"]) == 7
        check = (await client.get("/v1/operator/budgets:check")).json()
        assert check["mismatches"] == []


async def test_a_raise_wakes_every_run_that_the_level_refused(pg_url: str, tmp_path: Path) -> None:
    """COST-9, COST-10, HUMAN-2: of two operators who raise one limit at once to other amounts one is told, in words for
    people, that it is decided; after the raise the other Runs below that level go on by themselves."""
    async with (
        front(pg_url, tmp_path, routing=FilmRouting(LocalBlobs(tmp_path / "blobs"))) as (one,),
        one.visitor() as client,
    ):
        order = {"id": "film", "level": "project", "currency": "CNY", "hard": {"cost": "0.01"}}
        assert (await client.post("/v1/operator/budgets", json=order)).status_code == 201
        frame = {"id": "frame", "kind": "generate", "model": "frame", "input": {"prompt": "a quay"}}
        document = {"production": "p", "budget": {"currency": "CNY", "parent": "film"}, "nodes": [frame]}
        made = [(await client.post("/v1/runs", json={"production": document})).json()["id"] for _ in range(3)]
        reviews = await until(lambda: _waiting(client), lambda found: len(found) == 3, within_s=30)
        at = f"/v1/operator/reviews/{reviews[0]['id']}/decide"
        answers = await asyncio.gather(
            *(
                client.post(at, json={"decision": "raise_budget", "budget": {"currency": "CNY", "amount": amount}})
                for amount in ("60.00", "70.00")
            )
        )
        won, lost = sorted(answers, key=lambda answer: answer.status_code)
        assert (won.status_code, lost.status_code, lost.json()["code"]) == (200, 409, "conflict")
        assert "look at the queue again" in lost.json()["detail"]
        await until(lambda: _all(one, made), lambda runs: {run["status"] for run in runs} == {"succeeded"}, within_s=30)
        assert await _waiting(client) == []


async def test_a_budget_is_spent_by_its_tenant(pg_url: str, tmp_path: Path) -> None:
    """AUTH-1: one that names no tenant is for operators' own work; another's is there for nobody else; tenants share
    one that stands above their own."""
    async with (
        front(pg_url, tmp_path, routing=FilmRouting(LocalBlobs(tmp_path / "blobs"))) as (replica,),
        replica.visitor() as admin,
    ):
        for budget_id, more in (("film", {}), ("film/a", {"parent": "film", "tenant": "studio-a"})):
            order = {"id": budget_id, "level": "project", "currency": "CNY", **more}
            assert (await admin.post("/v1/operator/budgets", json=order)).status_code == 201
        owner, stranger = [await _tenant(replica, admin, tenant) for tenant in ("studio-a", "stranger")]
        for client, at, status in (
            (admin, "film", 202), (admin, "film/a", 422), (owner, "film", 422), (owner, "film/a", 202),
            (stranger, "film", 422), (stranger, "film/a", 422),
        ):  # fmt: skip
            gate = {"id": "go", "kind": "gate"}
            document = {"production": "p", "budget": {"currency": "CNY", "parent": at}, "nodes": [gate]}
            answer = await client.post("/v1/runs", json={"production": document})
            told = [error["pointer"] for error in answer.json().get("errors", [])]
            assert (answer.status_code, told) == (status, [] if status == 202 else ["/production/budget/parent"])
        order = {"model": "clip", "input": {"prompt": "x"}, "options": {"budget": "film"}}
        assert (await stranger.post("/v1/runs", json=order)).status_code == 422


async def _tenant(replica: Replica, admin: httpx2.AsyncClient, tenant: str) -> httpx2.AsyncClient:
    made = await admin.post("/v1/operator/keys", json={"tenant": tenant, "scopes": ["runs"]})
    return replica.visitor(made.json()["key"])


async def _waiting(client: httpx2.AsyncClient) -> list[dict[str, object]]:
    found: list[dict[str, object]] = (await client.get("/v1/operator/reviews")).json()["reviews"]
    return found


async def _ask(replica: Replica) -> str:
    async with replica.visitor() as client:
        body = {"model": "clip", "input": {"prompt": "x"}, "options": {"budget": "week-1"}}
        made = await client.post("/v1/runs", json=body)
    assert made.status_code == 202, made.text
    return str(made.json()["id"])


async def _all(replica: Replica, ids: list[str]) -> list[dict[str, object]]:
    async with replica.visitor() as client:
        return [(await client.get(f"/v1/runs/{run_id}")).json() for run_id in ids]


def _settled(runs: list[dict[str, object]]) -> bool:
    return (
        all(run["status"] in ("running", "failed") for run in runs) and sum(r["status"] == "running" for r in runs) <= 7
    )
