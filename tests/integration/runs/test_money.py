"""Money of Runs, through HTTP, over a real ledger."""

import asyncio
from collections import Counter
from decimal import Decimal
from pathlib import Path

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
