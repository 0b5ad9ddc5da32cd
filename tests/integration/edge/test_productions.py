"""Productions through HTTP: the real edge and runs over a real database, before a routing that films at once."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from libs.blobs.local import LocalBlobs
from libs.client.faults import Problem
from libs.client.rpc import RpcClient
from services.edge.domain.keys import ADMIN_KEY_ID
from tests.contract.edge.test_problems import check
from tests.support.filming import FilmRouting
from tests.support.front import Replica, front
from tests.support.waiting import eventually_async

REVIEWS, LETTERS = "/v1/operator/reviews", "/v1/operator/dead-letters"
COMMANDS = ("pause", "resume", "steer", "redrive", "redrive/preview", "cancel")
STEER = {"kind": "style", "data": {"text": "in blue"}}


def episode(cost: str = "100.00") -> dict[str, Any]:
    """Two frames behind a gate, a film of both, and a release that may be refused."""
    frame = {
        "kind": "generate", "model": "frame", "input": {"prompt": "${item.prompt}"},
        "consumes_steering": {"style": "input.prompt"},
    }  # fmt: skip
    shots = [{"id": "S01", "prompt": "a quay"}, {"id": "S02", "prompt": "a boat"}]
    return {
        "production": "episode",
        "budget": {"currency": "CNY", "cost": cost},
        "nodes": [
            {"id": "approved", "kind": "gate", "subject": {"title": "Dawn"}},
            {"id": "frames", "kind": "map", "over": shots, "node": frame, "needs": ["approved"]},
            {
                "id": "film", "kind": "generate", "model": "join", "input": {"clips": "${frames.artifacts}"},
                "compensation": "invalidate_artifact",
            },
            {"id": "release", "kind": "gate", "needs": ["film"]},
        ],
    }  # fmt: skip


@dataclass
class Studio:
    """What a test needs: the operator's client, who is tenant `default` too, and what stands behind."""

    replica: Replica
    routing: FilmRouting
    client: httpx2.AsyncClient

    async def create(self, document: Any, **headers: str) -> dict[str, Any]:
        """A new production."""
        answer = await self.client.post("/v1/runs", json={"production": document}, headers=headers)
        assert answer.status_code == 202, answer.text
        body: dict[str, Any] = answer.json()
        return body

    async def run(self, run_id: str) -> dict[str, Any]:
        """The Run now."""
        body: dict[str, Any] = (await self.client.get(f"/v1/runs/{run_id}")).json()
        return body

    async def command(self, run_id: str, verb: str, key: str = "", **body: Any) -> dict[str, Any]:
        """A command that is accepted."""
        headers = {"Idempotency-Key": key} if key else {}
        answer = await self.client.post(f"/v1/runs/{run_id}/{verb}", json=body, headers=headers)
        assert answer.status_code == (200 if verb.endswith("preview") else 202), answer.text
        told: dict[str, Any] = answer.json()
        return told

    async def asked(self, run_id: str, node: str, kind: str = "") -> dict[str, Any]:
        """The review of that node, and of that kind if one is named, once it waits."""
        found: list[dict[str, Any]] = []

        async def waits() -> bool:
            listed = (await self.client.get(REVIEWS, params={"run": run_id})).json()["reviews"]
            found[:] = [item for item in listed if item["node"] == node and kind in ("", item["kind"])]
            return bool(found)

        await eventually_async(waits)
        return found[0]

    async def decide(self, review: dict[str, Any], decision: str, **more: Any) -> dict[str, Any]:
        """Decide it."""
        answer = await self.client.post(f"{REVIEWS}/{review['id']}/decide", json={"decision": decision, **more})
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = answer.json()
        return told

    async def becomes(self, run_id: str, status: str) -> dict[str, Any]:
        """The Run, once it is in that status."""

        async def there() -> bool:
            return bool((await self.run(run_id))["status"] == status)

        await eventually_async(there)
        return await self.run(run_id)

    async def visitor(self, tenant: str, *scopes: str) -> httpx2.AsyncClient:
        """A client of a new key."""
        made = await self.client.post("/v1/operator/keys", json={"tenant": tenant, "scopes": list(scopes)})
        return self.replica.visitor(made.json()["key"])


def node_of(run: dict[str, Any], node_id: str) -> dict[str, Any]:
    """One of its nodes."""
    found: dict[str, Any] = next(item for item in run["nodes"] if item["id"] == node_id)
    return found


@pytest.fixture
async def studio(pg_url: str, tmp_path: Path) -> AsyncIterator[Studio]:
    """One replica."""
    routing = FilmRouting(LocalBlobs(tmp_path / "blobs"))
    async with front(pg_url, tmp_path, routing=routing) as (replica,), replica.visitor() as client:
        yield Studio(replica, routing, client)


async def test_a_bad_document_is_refused_whole(studio: Studio) -> None:
    """RUN-3: every fault at once, each by its pointer with its remedy, and nothing starts."""
    document = episode()
    document["nodes"][1]["node"]["model"] = "frame"
    document["nodes"][2] |= {"input": {"clips": "${frame.artifacts}"}, "compensation": "undo"}
    document["nodes"][3]["needs"] = ["film", "cut"]
    del document["budget"]
    problem = check(
        await studio.client.post("/v1/runs", json={"production": document, "model": "frame"}), 422, "validation_failed"
    )
    assert {"/model", "/production/budget"} <= {error["pointer"] for error in problem["errors"]}
    problem = check(await studio.client.post("/v1/runs", json={"production": document}), 422, "validation_failed")
    pointers = {error["pointer"] for error in problem["errors"]}
    assert pointers >= {
        "/production/budget", "/production/nodes/2/input/clips", "/production/nodes/2/compensation",
        "/production/nodes/3/needs",
    }, pointers  # fmt: skip
    unknown = episode()
    unknown["nodes"][1]["node"]["model"] = "unknown"
    problem = check(await studio.client.post("/v1/runs", json={"production": unknown}), 422, "validation_failed")
    assert [error["pointer"] for error in problem["errors"]] == ["/production/nodes/1/node/model"]
    assert (await studio.client.get("/v1/runs")).json()["runs"] == []
    assert studio.routing.submitted == []


async def test_a_review_is_claimed_and_decided_once(studio: Studio) -> None:
    """HUMAN-1, HUMAN-2: a key makes one production; its review is handed over, bound to what was seen, decided once."""
    made = await studio.create(episode(), **{"Idempotency-Key": "ep-1"})
    assert (made["status"], made["production"], made["model"]) == ("pending", "episode", None)
    assert (await studio.create(episode(), **{"Idempotency-Key": "ep-1"}))["id"] == made["id"]
    review = await studio.asked(made["id"], "approved")
    assert studio.routing.submitted == []
    assert (review["kind"], review["status"], "approve" in review["decisions"]) == ("gate", "open", True)
    assert review["subject"] == {"title": "Dawn"}  # HUMAN-1: what the approval binds to is there to be read
    at = f"{REVIEWS}/{review['id']}"
    assert (await studio.client.get(at)).json() == review
    check(await studio.client.get(f"{REVIEWS}/none"), 404, "not_found")
    claimed = (await studio.client.post(f"{at}/claim", json={"who": "ann"})).json()
    assert (claimed["status"], claimed["assignee"]) == ("claimed", "ann")
    other = {"decision": "approve", "subject_hash": "0" * 64}
    check(await studio.client.post(f"{at}/decide", json=other), 409, "conflict")
    wrong = await studio.client.post(f"{at}/decide", json={"decision": "raise_budget"})
    assert check(wrong, 422, "validation_failed")["errors"][0]["pointer"] == "/decision"
    decided = await studio.decide(review, "approve", comment="good", subject_hash=review["subject_hash"])
    assert (decided["status"], decided["decision"], decided["comment"]) == ("decided", "approve", "good")
    assert (await studio.decide(review, "approve"))["decision"] == "approve"
    assert (await studio.client.get(at)).json() == decided
    check(await studio.client.post(f"{at}/decide", json={"decision": "reject"}), 409, "conflict")
    release = await studio.asked(made["id"], "release")
    run = await studio.run(made["id"])
    assert node_of(run, "release")["review_id"] == release["id"]
    assert node_of(run, "frames/S01")["parent"] == "frames"
    assert run["usage"]["cost"] == {"currency": "CNY", "amount": "3.00"}


async def test_a_refused_release_is_compensated_and_mended(studio: Studio) -> None:
    """COMP-1, DLQ-1, STALE-1: what was made lies as a case file; a redrive of the same node, previewed with its price
    and sent twice, ends well and keeps the file."""
    run_id = (await studio.create(episode()))["id"]
    await studio.decide(await studio.asked(run_id, "approved"), "approve")
    await studio.decide(await studio.asked(run_id, "release"), "reject", comment="the coat changes its colour")
    run = await studio.becomes(run_id, "dead_letter")
    assert run["error"]["code"] == "rejected_by_review"
    letters = (await studio.client.get(LETTERS, params={"run": run_id})).json()["dead_letters"]
    letter = next(item for item in letters if item["node"] == "film")
    assert (await studio.client.get(f"{LETTERS}/{letter['id']}")).json() == letter
    assert (letter["attempts"][0]["provider_task_id"], letter["cost"]["amount"]) == ("job-film", "1.00")
    assert letter["artifacts"]
    reached = await studio.command(run_id, "redrive/preview", node="film", input={"fade": True})
    assert {item["node"]: item["effect"] for item in reached["affected"]}["film"] == "redriven"
    assert reached["cost"] == {"currency": "CNY", "amount": "2.00"}
    assert (await studio.run(run_id))["status"] == "dead_letter"
    more = {"node": "film", "input": {"fade": True}, "reason": "the fade hides it"}
    nobody = await studio.client.post(f"/v1/runs/{run_id}/redrive", json={"node": "film", "supply": "nobody"})
    assert check(nobody, 422, "validation_failed")["errors"][0]["pointer"] == "/supply"
    await studio.command(run_id, "redrive", "again-1", **more)
    release = await studio.asked(run_id, "release")
    again = await studio.client.post(f"/v1/runs/{run_id}/redrive", json=more, headers={"Idempotency-Key": "again-1"})
    assert (again.status_code, again.headers["idempotency-replayed"]) == (202, "true")
    assert studio.routing.orders["film"]["fade"] is True
    assert len(studio.routing.submitted) == 4, "a command that comes again changes nothing"
    await studio.decide(release, "approve")
    run = await studio.becomes(run_id, "succeeded")
    (made,) = run["result"]["artifacts"]
    assert (await studio.client.get(made["url"])).status_code == 200
    assert (await studio.client.get(LETTERS, params={"run": run_id})).json()["dead_letters"] == []
    kept = (await studio.client.get(LETTERS, params={"run": run_id, "redriven": "true"})).json()["dead_letters"]
    events = (await studio.client.get(f"/v1/runs/{run_id}/events", params={"limit": 1000})).json()["events"]
    assert [event["data"]["who"] for event in events if event["kind"] == "run_redriven"] == [ADMIN_KEY_ID]
    assert any("the fade hides it" in item["redrive_reason"] for item in kept if item["node"] == "film")


async def test_steering_and_pauses_through_http(studio: Studio) -> None:
    """STEER-1, STEER-2, STEER-4, RUN-8: an input is one input however often it comes, reaches what begins after it, and
    outlives a pause; a late pause does not undo the resume that followed it."""
    run_id = (await studio.create(episode()))["id"]
    review = await studio.asked(run_id, "approved")
    first = await studio.command(run_id, "steer", "steer-1", **STEER)
    assert first["sequence"] == 1
    assert await studio.command(run_id, "steer", "steer-1", **STEER) == first
    assert (await studio.command(run_id, "pause", "pause-1", reason="lunch"))["status"] == "paused"
    late = await studio.client.post(f"/v1/runs/{run_id}/steer", json=STEER, headers={"Idempotency-Key": "steer-1"})
    assert (late.headers["idempotency-replayed"], late.json()) == ("true", first)
    await studio.decide(review, "approve")
    second = await studio.command(run_id, "steer", kind="style", data={"text": "at night"})
    assert second["sequence"] == 2
    assert (await studio.run(run_id))["pending_steering"] == 2
    assert studio.routing.submitted == []
    assert (await studio.command(run_id, "resume", "resume-1"))["status"] == "running"
    assert (await studio.command(run_id, "pause", "pause-1", reason="lunch"))["status"] == "running"
    release = await studio.asked(run_id, "release")
    prompts = {node: studio.routing.orders[node]["prompt"] for node in ("frames/S01", "frames/S02")}
    assert prompts == {"frames/S01": "a quay in blue at night", "frames/S02": "a boat in blue at night"}
    events = (await studio.client.get(f"/v1/runs/{run_id}/events", params={"limit": 1000})).json()["events"]
    commands = [event["data"]["who"] for event in events if event["kind"] in ("run_paused", "run_resumed")]
    assert commands == [ADMIN_KEY_ID] * 2
    taken = [event["data"] for event in events if event["kind"] == "run.steer.consumed"]
    assert [item["source_event_id"] for item in taken] == [first["steering_event_id"], second["steering_event_id"]]
    await studio.decide(release, "approve")
    await studio.becomes(run_id, "succeeded")
    answer = await studio.client.post(f"/v1/runs/{run_id}/steer", json=STEER)
    check(answer, 409, "run_terminal")


async def test_a_limit_is_raised_by_a_decision(studio: Studio) -> None:
    """COST-10, HUMAN-2: what does not fit waits for a person with the level that refused; raised, it goes on."""
    run_id = (await studio.create(episode("0.50")))["id"]  # less than any Hold: nothing that ends sets it free
    await studio.decide(await studio.asked(run_id, "approved"), "approve")

    async def refused() -> bool:
        listed = (await studio.client.get(REVIEWS, params={"run": run_id})).json()["reviews"]
        return any(item["kind"] == "budget" for item in listed)

    await eventually_async(refused)
    (review,) = (await studio.client.get(REVIEWS, params={"run": run_id})).json()["reviews"]
    assert "raise_budget" in review["decisions"]
    problem = check(
        await studio.client.post(f"{REVIEWS}/{review['id']}/decide", json={"decision": "raise_budget"}),
        422, "validation_failed",
    )  # fmt: skip
    assert [error["pointer"] for error in problem["errors"]] == ["/budget"]
    limit = {"currency": "CNY", "amount": "250.00"}
    await studio.decide(review, "raise_budget", budget=limit, comment="worth it")
    await studio.decide(await studio.asked(run_id, "release"), "approve")
    await studio.becomes(run_id, "succeeded")
    budget = (await studio.client.get(f"/v1/operator/budgets/run%3A{run_id}")).json()
    assert (budget["hard"]["cost"], budget["held"]["cost"]["amount"]) == (limit, "0.00")


async def test_minutes_and_attempts_stop_and_ask(studio: Studio) -> None:
    """COST-10: over the real ledger a look is held, booked from its claim, and refused where no minutes are left; so
    are attempts; each asks for exactly what it lacks, and goes on once a person has raised that."""
    document = episode() | {"budget": {"currency": "CNY", "cost": "100.00", "attempts": 3, "review_minutes": 10}}
    run_id = (await studio.create(document))["id"]
    path = f"/v1/operator/budgets/run%3A{run_id}"
    approved = await studio.asked(run_id, "approved")
    assert (await studio.client.get(path)).json()["held"]["review_minutes"] == 10
    await studio.client.post(f"{REVIEWS}/{approved['id']}/claim", json={"who": "lena"})
    await studio.decide(approved, "approve")
    attempts = await studio.asked(run_id, "film", "budget")
    assert "is limited to 3 attempts" in attempts["cause"]
    money = {"decision": "raise_budget", "budget": {"currency": "CNY", "amount": "900.00"}}
    refused = await studio.client.post(f"{REVIEWS}/{attempts['id']}/decide", json=money)
    problem = check(refused, 422, "validation_failed")
    assert [error["pointer"] for error in problem["errors"]] == ["/budget"]
    await studio.decide(attempts, "raise_budget", budget={"attempts": 9})
    minutes = await studio.asked(run_id, "release", "budget")
    assert "Attempts so far: 1 for release, film" in minutes["question"]
    assert (await studio.run(run_id))["status"] == "running"
    await studio.decide(minutes, "raise_budget", budget={"review_minutes": 60})
    await studio.decide(await studio.asked(run_id, "release", "gate"), "approve")
    await studio.becomes(run_id, "succeeded")
    budget = (await studio.client.get(path)).json()
    assert (budget["spent"]["attempts"], budget["spent"]["review_minutes"]) == (3, 2)
    assert (budget["held"]["attempts"], budget["held"]["review_minutes"]) == (0, 0)
    assert (await studio.client.get("/v1/operator/budgets:check")).json()["mismatches"] == []


async def test_a_budgets_deadline_stops_and_asks(studio: Studio) -> None:
    """COST-10: past the deadline of a level above nothing is made; moved by a person, and approved, it goes on."""
    film = {"id": "film", "level": "project", "currency": "CNY", "deadline_at": "2026-01-01T00:00:00Z"}
    assert (await studio.client.post("/v1/operator/budgets", json=film)).status_code == 201
    frame = {"id": "frame", "kind": "generate", "model": "frame", "input": {"prompt": "a quay"}}
    document = {"production": "late", "budget": {"currency": "CNY", "parent": "film"}, "nodes": [frame]}
    run_id = (await studio.create(document))["id"]
    asked = await studio.asked(run_id, "frame", "budget")
    assert "May project film have more time?" in asked["question"]
    assert "raise_budget" not in asked["decisions"]
    assert studio.routing.submitted == []
    later = {"deadline_at": "2099-01-01T00:00:00Z", "reason": "Ann: the release was moved"}
    assert (await studio.client.post("/v1/operator/budgets/film/limits", json=later)).status_code == 200
    await studio.decide(asked, "approve")
    await studio.becomes(run_id, "succeeded")


async def test_strangers_and_users_at_the_desks(studio: Studio) -> None:
    """AUTH-1, DLQ-1: another tenant's Run takes no command, in the words of one that never was; desks are the
    operators', of any tenant: they decide and redrive."""
    run_id = (await studio.create(episode()))["id"]
    review = await studio.asked(run_id, "approved")
    async with await studio.visitor("stranger", "runs") as stranger:
        for verb in COMMANDS:
            body = STEER if verb == "steer" else {}
            foreign = check(await stranger.post(f"/v1/runs/{run_id}/{verb}", json=body), 404, "not_found")
            missing = check(await stranger.post(f"/v1/runs/{'0' * 26}/{verb}", json=body), 404, "not_found")
            assert foreign["detail"] == missing["detail"].replace("0" * 26, run_id)
        for method, path in (("GET", REVIEWS), ("POST", f"{REVIEWS}/{review['id']}/claim"), ("GET", LETTERS),
                             ("POST", f"{REVIEWS}/{review['id']}/decide"), ("GET", f"{LETTERS}/x")):  # fmt: skip
            check(await stranger.request(method, path, json={} if method == "POST" else None), 403, "forbidden")
    assert (await studio.run(run_id))["status"] == "running"
    async with await studio.visitor("elsewhere", "operate") as operator:
        assert [item["id"] for item in (await operator.get(REVIEWS)).json()["reviews"]] == [review["id"]]
        assert (await operator.get(REVIEWS, params={"tenant": "elsewhere"})).json()["reviews"] == []
        check(await operator.post(f"/v1/runs/{run_id}/pause", json={}), 403, "forbidden")
        body = {"decision": "approve"}
        assert (await operator.post(f"{REVIEWS}/{review['id']}/decide", json=body)).status_code == 200
        check(await operator.post(f"{REVIEWS}/none/decide", json=body), 404, "not_found")
        check(await operator.get(f"{LETTERS}/none"), 404, "not_found")
        again = f"/v1/runs/{run_id}/redrive"
        await studio.decide(await studio.asked(run_id, "release"), "reject", comment="too dark")
        await studio.becomes(run_id, "dead_letter")
        assert (await operator.post(f"{again}/preview", json={"node": "film"})).status_code == 200
        redriven = await operator.post(again, json={"node": "film", "input": {"fade": True}, "reason": "mended"})
        assert (redriven.status_code, redriven.json()["id"]) == (202, run_id)
        check(await operator.post(f"/v1/runs/{'0' * 26}/redrive", json={}), 404, "not_found")
        check(await operator.get(f"/v1/runs/{run_id}"), 403, "forbidden")
    await studio.asked(run_id, "release")
    kept = (await studio.client.get(LETTERS, params={"run": run_id, "redriven": "true"})).json()["dead_letters"]
    assert next(item for item in kept if item["node"] == "film")["redrive_reason"].endswith(": mended")


async def test_the_same_over_grpc(studio: Studio) -> None:
    """CLIENT-1: the client library makes, steers, decides and redrives by typed calls over the other door."""
    channel = studio.replica.channels.to("runs")
    async with RpcClient("", "", tenant="default", channel=channel) as client:
        run = await client.create_production(episode(), idempotency_key="k")
        assert (await client.create_production(episode(), idempotency_key="k")).id == run.id
        assert (await client.steer_run(run.id, "style", {"text": "in blue"})).sequence == 1
        studio.routing.refused["frames/S02"] = 1
        await studio.asked(run.id, "approved")
        (review,) = await client.reviews(run_id=run.id)
        assert (await client.claim_review(review.id, "ann")).assignee == "ann"
        assert (await client.review(review.id)).assignee == "ann"
        assert (await client.decide_review(review.id, "approve", "ann")).decided_by == "ann"
        ended = await client.finished(run.id)
        assert ended.status == "dead_letter"
        assert ended.node("frames/S01").status == "succeeded"
        assert ended.error is not None
        letters = {letter.node: letter for letter in await client.dead_letters(run_id=run.id)}
        assert (await client.dead_letter(letters["frames/S02"].id)).desk == "content"
        changes = {"prompt": "a ship"}
        reached = await client.preview_redrive(run.id, "frames/S02", input=changes)
        assert {item.node: item.effect for item in reached.affected}["frames/S02"] == "redriven"
        await client.redrive_run(run.id, "frames/S02", reason="another prompt", input=changes, who="ann")
        kept = {letter.node: letter for letter in await client.dead_letters(run_id=run.id, with_redriven=True)}
        assert kept["frames/S02"].redrive_reason == "ann: another prompt"
        await studio.asked(run.id, "release")
        assert studio.routing.orders["frames/S02"]["prompt"].startswith("a ship")
        with pytest.raises(Problem) as wrong:
            await client.decide_review((await client.reviews(run_id=run.id))[0].id, "raise_budget", "ann")
        assert wrong.value.errors[0][0] == "/decision"
