"""The production of the sweep: its document, the people who direct it, and what is asked of its history and its money.

Who directs repeats after a death what was done before it, under the same keys: nobody knows which answers were lost.
"""

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from tests.support.visitor import FIXED, RESTING, Visitor, until

Told = dict[str, Any]
STYLE = "in ink"
SHOTS = ("S1", "S2")
REVIEWS = "/v1/operator/reviews"
STEERED = "run.steer.accepted"
STEERING_ENDS = frozenset({"run.steer.consumed", "run.steer.superseded"})


def document(model: str, name: str) -> dict[str, Any]:
    """Two shots behind a gate, the first as the canary of the other; both are looked at and released."""
    shot = {
        "kind": "generate",
        "model": model,
        "input": {"prompt": "${item.prompt}", **FIXED},
        "consumes_steering": {"style": "input.prompt"},
    }
    items = [{"id": shot_id, "shot_class": "sea", "prompt": f"a boat {shot_id} {name}"} for shot_id in SHOTS]
    nodes = [
        {"id": "go", "kind": "gate", "subject": {"title": "at sea"}},
        {
            "id": "shots",
            "kind": "map",
            "needs": ["go"],
            "over": items,
            "canary": {"per": "shot_class", "count": 1, "release": "auto"},
            "node": shot,
        },
        {"id": "looked", "kind": "check", "needs": ["shots"], "checks": ["decodes"]},
        {"id": "release", "kind": "gate", "needs": ["looked"]},
    ]
    return {"production": model, "budget": {"currency": "CNY", "cost": "40.00"}, "nodes": nodes}


async def direct(api: Visitor, run_id: str, within_s: float) -> None:
    """Approve whatever waits until the Run is at rest; while its first gate waits, say the style."""

    async def look() -> str:
        for review in (await api.get(REVIEWS, run=run_id))["reviews"]:
            assert review["node"] in ("go", "release"), review
            if review["node"] == "go":
                await steer(api, run_id)
            await api.call("POST", f"{REVIEWS}/{review['id']}/decide", body={"decision": "approve"})
        return str((await api.run(run_id))["status"])

    await until(look, lambda status: status in RESTING | {"dead_letter"}, within_s)


async def steer(api: Visitor, run_id: str) -> str:
    """The id of the one steering input, sent or sent again."""
    body = {"kind": "style", "data": {"text": STYLE}}
    headers = {"Idempotency-Key": "the-style"}
    return str((await api.call("POST", f"/v1/runs/{run_id}/steer", body=body, headers=headers))["steering_event_id"])


async def judge(api: Visitor, run: Told, events: list[Told], jobs: Sequence[Told]) -> None:
    """AssertionError for a broken promise. `jobs`: what the provider's book says of this Run's Attempts."""
    assert {node["status"] for node in run["nodes"]} == {"succeeded"}, run["nodes"]
    assert len(await _charged(api, run, jobs)) == len(SHOTS), jobs
    accepted = [event["data"]["steering_event_id"] for event in events if event["kind"] == STEERED]
    assert accepted == [await steer(api, run["id"])], accepted
    ended = Counter(event["data"]["steering_event_id"] for event in events if event["kind"] in STEERING_ENDS)
    assert ended == Counter(accepted), ended
    assert await api.events_of(run["id"]) == events, "a late repeat wrote something"
    begun = {event["data"]["node"]: event["data"] for event in events if event["kind"] == "node_ready"}
    shots = [begun[f"shots/{shot_id}"]["input"]["prompt"] for shot_id in SHOTS]
    assert all(STYLE in prompt for prompt in shots), shots


async def _charged(api: Visitor, run: Told, jobs: Sequence[Told]) -> list[Decimal]:
    """What the provider charged for; the budget and the Run say the same, and nothing is held."""
    path = f"/v1/operator/budgets/{run['budget_id']}"
    budget = await until(lambda: api.get(path), lambda told: not Decimal(told["held"]["cost"]["amount"]))
    charges = [Decimal(job["charged"]["amount"]) for job in jobs]
    spent, used = (Decimal(told["cost"]["amount"]) for told in (budget["spent"], run["usage"]))
    assert spent == used == sum(charges), (budget, run["usage"], jobs)
    assert budget["held"]["attempts"] == 0, budget
    wrong = (await api.get("/v1/operator/budgets:check"))["mismatches"]
    assert wrong == [], wrong
    return [charge for charge in charges if charge]
