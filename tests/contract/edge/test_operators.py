"""Tasks, models, health, capacity, alerts, uncertain submissions and the catalogue."""

import pytest

from libs.faults.fault import Fault
from pointsman.health.v1.health_pb2 import HealthState
from pointsman.routing.v1 import alert_pb2
from tests.contract.edge.house import EdgeHouse
from tests.contract.edge.test_problems import check
from tests.contract.edge.values import at

CATALOG = "version: 1\ncurrency: CNY\n"


async def test_a_task_with_its_attempts(edge: EdgeHouse) -> None:
    """ATT-1: every attempt of a task is told, with its error, quote and times."""
    edge.routing.add("t1")
    async with await edge.user() as client:
        task = (await client.get("/v1/tasks/t1")).json()
    assert set(task) == {
        "id", "run_id", "node_id", "model", "status", "waiting_reason", "attempts", "selection_rounds",
        "cancel_requested",
    }  # fmt: skip
    assert (task["status"], task["selection_rounds"]) == ("running", 1)
    assert task["attempts"][0] == {
        "id": "a1",
        "number": 1,
        "supply": "ark-main/seedance",
        "channel": "ark-main",
        "state": "failed",
        "client_token": "t1",
        "provider_task_id": None,
        "error": {
            "code": "key_invalid",
            "message": "401 from ark-main",
            "retryable": True,
            "category": "supply",
            "scope": "channel",
        },
        "quote": {"currency": "CNY", "amount": "6.00"},
        "cost": None,
        "submitted_at": "2026-01-01T12:00:01Z",
        "accepted_at": None,
        "finished_at": "2026-01-01T12:00:02Z",
        "late": None,
    }


async def test_selections_name_every_candidate(edge: EdgeHouse) -> None:
    """SEL-16: the fate of every supply with the step and the reason that dropped it; SEL-24: four steps."""
    edge.routing.add("t1")
    async with await edge.user() as client:
        (found,) = (await client.get("/v1/tasks/t1/selections")).json()["selections"]
    assert set(found) == {"round", "tier", "policy", "baseline", "spent", "candidates", "chosen", "steps"}
    assert found["policy"] == {"id": "stable", "revision": 3}
    assert (found["chosen"], len(found["steps"])) == ("b/x", 4)
    assert found["spent"] == {"currency": "CNY", "amount": "0.00"}
    chosen, dropped = found["candidates"]
    assert (chosen["fate"], chosen["rank"], chosen["success_rate"], chosen["free_slots"]) == ("chosen", 1, 0.5, 3)
    assert (dropped["step"], dropped["reason"], dropped["rank"], dropped["quote"]) == (
        "SEL-8",
        "circuit_open",
        None,
        None,
    )


async def test_operators_explain_every_task(edge: EdgeHouse) -> None:
    """SEL-24: whoever operates reads any tenant's task and its selections."""
    edge.routing.add("t1", "somebody")
    async with edge.admin as admin:
        assert (await admin.get("/v1/tasks/t1")).status_code == 200
        assert (await admin.get("/v1/tasks/t1/selections")).status_code == 200


async def test_models_in_the_known_shape(edge: EdgeHouse) -> None:
    """TIER-6: the list of models has OpenAI's shape and discloses what may be lost."""
    async with await edge.user() as client:
        listed = (await client.get("/v1/models")).json()
    assert listed["object"] == "list"
    (model,) = listed["data"]
    assert (model["id"], model["object"], model["created"], model["owned_by"]) == (
        "clip",
        "model",
        1767268800,
        "pointsman",
    )
    assert (model["kind"], model["profile"], model["limits"]) == ("video", "933", {"duration_s": {"min": 4, "max": 15}})
    assert model["price_range"] == [{"currency": "CNY", "low": "4.00", "high": "37.50", "per": "request"}]
    assert model["degradations"] == [{"to_profile": "900", "drops": ["reference_videos"], "discloses": "less"}]


async def test_health_and_capacity(edge: EdgeHouse) -> None:
    """HLT-2: the ladder is visible: state, epoch, successes and slots allowed; CAP-4, CAP-7: and what is in
    use of them, the slots that the provider's answers led to, and until when it asked not to be asked."""
    async with edge.admin as admin:
        health = (await admin.get("/v1/operator/health")).json()
        capacity = (await admin.get("/v1/operator/capacity")).json()
    (supply,) = health["supplies"]
    assert supply == {
        "id": "ark-main/seedance",
        "state": "recovering",
        "epoch": 2,
        "recovery_successes": 2,
        "effective_concurrency": 2,
        "since": "2026-01-01T12:00:00Z",
        "cooldown_until": "2026-01-01T12:01:00Z",
        "success_rate": 0.9,
        "success_rate_low": 0.7,
        "success_rate_high": 0.97,
        "samples": 20,
        "reason": "recovering",
    }
    assert [channel["id"] for channel in health["channels"]] == ["ark-main"]
    assert health["channels"][0]["effective_concurrency"] is None
    assert capacity["supplies"] == [
        {
            "id": "ark-main/seedance",
            "configured": 5,
            "effective": 2,
            "in_use": 1,
            "rpm_used": 4,
            "tpm_used": 0,
            "adaptive": 3,
            "frozen_until": "2026-01-01T12:01:00Z",
        }
    ]
    channel = capacity["channels"][0]
    assert (channel["effective"], channel["adaptive"], channel["frozen_until"]) == (None, None, None)
    assert (capacity["leases"][0]["holder"], capacity["leases"][0]["supply"]) == ("routing-1", "ark-main/seedance")


@pytest.mark.parametrize(
    "query, channels, supplies, leases",
    [
        ("", 1, 1, 1),
        ("supply=", 1, 1, 1),
        ("supply=ark-main/seedance", 0, 1, 1),
        ("supply=ark-main%2Fseedance&supply=other", 0, 1, 1),
        ("channel=ark-main", 1, 0, 1),
        ("channel=ark-main&supply=ark-main/seedance", 1, 1, 1),
        ("supply=other&channel=", 0, 0, 0),
    ],
)
async def test_health_and_capacity_of_what_is_named(
    edge: EdgeHouse, query: str, channels: int, supplies: int, leases: int
) -> None:
    """HLT-2, CAP-7: an operator asks for some Channels and Supplies alone; the leases are those that lie there."""
    async with edge.admin as admin:
        health = (await admin.get(f"/v1/operator/health?{query}")).json()
        capacity = (await admin.get(f"/v1/operator/capacity?{query}")).json()
    for told in (health, capacity):
        assert (len(told["channels"]), len(told["supplies"])) == (channels, supplies)
    assert len(capacity["leases"]) == leases


async def test_alerts_and_uncertain_attempts(edge: EdgeHouse) -> None:
    """TIER-7: alerts are listed by kind; ATT-5: uncertain attempts are listed for an operator's word."""
    edge.routing.alerts.append(
        alert_pb2.Alert(
            id="x", kind="degradation_in_use", severity="medium", subject="clip", message="m", create_time=at(), count=2
        )
    )
    edge.routing.add("t1")
    async with edge.admin as admin:
        (alert,) = (await admin.get("/v1/operator/alerts", params={"kind": "degradation_in_use"})).json()["alerts"]
        assert (alert["severity"], alert["count"], alert["cause"]) == ("medium", 2, None)
        assert (await admin.get("/v1/operator/alerts", params={"kind": "other"})).json()["alerts"] == []
        (attempt,) = (await admin.get("/v1/operator/uncertain")).json()["attempts"]
        assert (attempt["id"], attempt["task_id"], attempt["state"]) == ("a2", "t1", "submission_uncertain")
        assert attempt["uncertain_deadline"] == "2026-01-01T12:30:00Z"


async def test_an_alert_shows_what_was_measured(edge: EdgeHouse) -> None:
    """SLO-2, OPS-6: a figure with its baseline and trend; null where nothing was measured. The order is routing's."""
    measure = alert_pb2.Measure(figure="cost", unit="CNY", baseline=1, values=[1.5, 2.0], trend="rising")
    for name, measured in (("y", None), ("x", measure)):
        edge.routing.alerts.append(
            alert_pb2.Alert(id=name, kind="cost_drift", severity="high", subject="clip", message="m", create_time=at(),
                            count=2, measure=measured)
        )  # fmt: skip
    async with edge.admin as admin:
        first, second = (await admin.get("/v1/operator/alerts")).json()["alerts"]
    assert (first["id"], first["measure"]) == ("y", None)
    assert second["measure"] == {
        "figure": "cost", "unit": "CNY", "value": 2.0, "baseline": 1.0, "trend": "rising", "values": [1.5, 2.0],
    }  # fmt: skip


async def test_an_operators_word_on_an_attempt(edge: EdgeHouse) -> None:
    """ATT-5: accepted needs the provider's id, not_accepted takes none; an unknown attempt is not found."""
    edge.routing.add("t1")
    path = "/v1/operator/attempts/a2/resolve"
    async with edge.admin as admin:
        word = {"resolution": "accepted", "provider_task_id": "cgt-1"}
        assert (await admin.post(path, json=word)).json()["id"] == "t1"
        assert (edge.routing.resolved[0].resolution, edge.routing.resolved[0].provider_task_id) == ("accepted", "cgt-1")
        assert (await admin.post(path, json={"resolution": "not_accepted"})).status_code == 200
        for wrong in (
            {},
            {"resolution": "perhaps"},
            {"resolution": "accepted"},
            {**word, "resolution": "not_accepted"},
        ):
            check(await admin.post(path, json=wrong), 422, "validation_failed")
        check(await admin.post(path.replace("a2", "a9"), json={"resolution": "not_accepted"}), 404, "not_found")


@pytest.mark.parametrize(
    "media_type", ["application/yaml", "text/plain", "application/x-www-form-urlencoded", "application/json", None]
)
async def test_a_catalogue_is_applied(edge: EdgeHouse, media_type: str | None) -> None:
    """CAT-1: the file goes to routing as it is, whatever a tool calls it; the answer tells changes and standings."""
    headers = {"content-type": media_type} if media_type else {}
    async with edge.admin as admin:
        answer = await admin.post("/v1/operator/catalog:apply?merge=true", content=CATALOG.encode(), headers=headers)
    assert answer.json() == {
        "revision": 7,
        "changes": [{"kind": "model", "id": "clip", "change": "created", "details": ["+"]}],
        "publications": [{"model": "clip", "published": False, "reasons": ["no price rule"]}],
    }
    assert (edge.catalog.applied[0].catalog_yaml, edge.catalog.applied[0].merge) == (CATALOG, True)


async def test_bad_catalogues_are_refused(edge: EdgeHouse) -> None:
    """CAT-1: every fault of a file is named by path; what is no text at all does not get that far."""
    edge.catalog.refusal = Fault.invalid(("/models/2/bindings/0/supply", "no supply 'x'"), code="catalog_invalid")
    path = "/v1/operator/catalog:apply"
    async with edge.admin as admin:
        problem = check(await admin.post(path, content=CATALOG.encode()), 422, "catalog_invalid")
        assert problem["errors"] == [{"pointer": "/models/2/bindings/0/supply", "reason": "no supply 'x'"}]
        check(await admin.post(path, content=b"\xff"), 400, "malformed_request")
        check(await admin.post(path, content=b"a: \x00"), 422, "validation_failed")
        check(await admin.post(path, content=b""), 422, "validation_failed")
        check(await admin.post(path, files={"file": b"x"}), 415, "unsupported_media_type")
        check(await admin.post(f"{path}?merge=perhaps", content=b"a"), 422, "validation_failed")


async def test_the_catalogue_is_shown_and_compared(edge: EdgeHouse) -> None:
    """CAT-2: every object with its revision, over all pages; a diff tells what would change."""
    async with edge.admin as admin:
        shown = (await admin.get("/v1/operator/catalog")).json()
        assert (shown["revision"], [(item["kind"], item["id"]) for item in shown["objects"]]) == (
            7,
            [("channel", "a"), ("channel", "b")],
        )
        diff = (await admin.post("/v1/operator/catalog:diff", content=CATALOG.encode())).json()
        assert diff == {"changes": [{"kind": "supply", "id": "a/b", "change": "retired", "details": []}]}
        check(await admin.get("/v1/operator/catalog?kind=house"), 422, "validation_failed")


async def test_publishing_passes_a_gate(edge: EdgeHouse) -> None:
    """CAT-3: a model is published, or the answer is 422 with all reasons."""
    async with edge.admin as admin:
        opened = await admin.post("/v1/operator/models/clip:publish")
        assert opened.json() == {"model": "clip", "published": True, "reasons": []}
        edge.catalog.reasons = ["supply 'a/b' has no price rule", "secret env:X is not set"]
        problem = check(await admin.post("/v1/operator/models/clip:publish"), 422, "catalog_not_publishable")
        assert [error["reason"] for error in problem["errors"]] == edge.catalog.reasons


@pytest.mark.parametrize("verb, state", [("enable", 1), ("drain", 2), ("disable", 3)])
async def test_an_operators_word_on_a_supply(edge: EdgeHouse, verb: str, state: int) -> None:
    """CAT-5: enabled, draining or disabled, for a supply or a channel; an id in a path is percent-encoded."""
    async with edge.admin as admin:
        answer = await admin.post(f"/v1/operator/supplies/ark-main%2Fseedance:{verb}", json={"reason": "tired"})
        assert answer.json()["id"] == "ark-main/seedance"
        await admin.post(f"/v1/operator/channels/ark-main:{verb}")
        check(await admin.post(f"/v1/operator/supplies/gone:{verb}"), 404, "not_found")
    supply, channel = edge.catalog.admin
    assert (supply.subject.kind, supply.subject.id, supply.state) == (3, "ark-main/seedance", state)
    assert supply.reason == "tired (key admin)"
    assert (channel.subject.kind, channel.subject.id, channel.state) == (2, "ark-main", state)


@pytest.mark.parametrize(
    "verb, state", [("close", HealthState.HEALTH_STATE_HEALTHY), ("open", HealthState.HEALTH_STATE_CIRCUIT_OPEN)]
)
async def test_an_operators_word_on_a_breaker(edge: EdgeHouse, verb: str, state: int) -> None:
    """HLT-12: a circuit is closed or opened by an operator, whose reason and key are on record; disabled stays so."""
    path = f"/v1/operator/supplies/ark-main%2Fseedance:{verb}-circuit"
    async with edge.admin as admin, await edge.user() as user:
        answer = (await admin.post(path, json={"reason": "the provider called"})).json()
        assert (await admin.post(f"/v1/operator/channels/ark-main:{verb}-circuit")).status_code == 200
        check(await admin.post(f"/v1/operator/supplies/gone:{verb}-circuit"), 404, "not_found")
        check(await user.post(path), 403, "forbidden")
        edge.health.disabled = True
        problem = check(await admin.post(path), 409, "conflict")
    assert (answer["id"], answer["epoch"]) == ("ark-main/seedance", 3)
    assert "enable it first" in problem["detail"]
    supply, channel = edge.health.asked
    assert (supply.subject.id, supply.state, supply.reason) == (
        "ark-main/seedance",
        state,
        "the provider called (key admin)",
    )
    assert (channel.subject.kind, channel.subject.id, channel.state) == (2, "ark-main", state)


async def test_a_supply_is_verified(edge: EdgeHouse) -> None:
    """CAT-7: an operator runs a supply's regression set and goes on with it by its id; nobody else does."""
    path = "/v1/operator/supplies/ark-main%2Fseedance:verify"
    async with edge.admin as admin, await edge.user() as user:
        told = await admin.post(path, json={"request_id": "v1", "timeout_s": 3})
        assert told.status_code == 200, told.text
        begun = (await admin.post(path)).json()
        check(await user.post(path), 403, "forbidden")
        check(await admin.post("/v1/operator/supplies/gone:verify"), 404, "not_found")
        check(await admin.post(path, json={"timeout_s": 61}), 422, "validation_failed")
    cost = {"currency": "CNY", "amount": "4.00"}
    case = {"name": "words", "task_id": "t", "call_id": None, "status": "failed", "reasons": ["late"], "cost": cost}
    assert told.json() == {
        "id": "v1",
        "supply": "ark-main/seedance",
        "upstream_model": "m",
        "capability_version": 2,
        "status": "failed",
        "cases": [case],
        "cost": cost,
        "started_at": "2026-01-01T12:00:00Z",
        "finished_at": "2026-01-01T12:00:00Z",
    }
    assert len(begun["id"]) == 26
    first, second = edge.catalog.verified
    assert (first.request_id, first.wait.seconds, second.request_id) == ("v1", 3, begun["id"])


async def test_figures_of_productions_are_shown(edge: EdgeHouse) -> None:
    """SLO-1: of everything first, then by model; what is not known is null and what is 0 is 0; a window by request."""
    async with edge.admin as client:
        told = (await client.get("/v1/operator/slo", params={"window_s": 3600})).json()
        assert (await client.get("/v1/operator/slo")).status_code == 200
        refused = await client.get("/v1/operator/slo", params={"window_s": 0})
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/query/window_s")
    assert edge.runs.windows == [3600, 86_400]
    whole, clip = told["levels"]
    assert (told["checked"], told["rebuilt"]) == (2, 2)
    assert (whole["model"], whole["success_rate"], whole["first_pass_yield"]) == (None, 0.75, None)
    assert whole["cost_per_usable_second"] == [{"currency": "CNY", "amount": "1.25"}]
    assert (clip["model"], clip["first_pass_yield"], clip["review_wait_s"]) == ("clip", 0.0, None)
    _, key = await edge.key()
    async with edge.client(key) as user:
        assert (await user.get("/v1/operator/slo")).status_code == 403
