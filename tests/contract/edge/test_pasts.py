"""Alerts that were seen, states of the past, and the health events behind a refusal."""

import pytest
from google.type.money_pb2 import Money

from pointsman.common.v1 import artifact_pb2
from pointsman.routing.v1 import alert_pb2, task_pb2
from tests.contract.edge.house import EdgeHouse
from tests.contract.edge.test_problems import check
from tests.contract.edge.values import at


async def test_an_alert_is_acknowledged(edge: EdgeHouse) -> None:
    """OPS-6: seen, it leaves the open ones and stays in the list; one that never was is not found."""
    edge.routing.alerts.append(
        alert_pb2.Alert(
            id="x", kind="stuck_state", severity="high", subject="t1", message="m", create_time=at(), count=1
        )
    )
    path = "/v1/operator/alerts"
    async with edge.admin as admin:
        assert [item["id"] for item in (await admin.get(path, params={"open": "true"})).json()["alerts"]] == ["x"]
        seen = (await admin.post(f"{path}/x:acknowledge")).json()
        assert (seen["id"], seen["acknowledged_at"]) == ("x", "2026-01-01T12:00:09Z")
        assert (await admin.get(path, params={"open": "true"})).json()["alerts"] == []
        assert len((await admin.get(path)).json()["alerts"]) == 1
        check(await admin.post(f"{path}/y:acknowledge"), 404, "not_found")
        check(await admin.get(path, params={"open": "perhaps"}), 422, "validation_failed")


async def test_acknowledging_is_for_operators(edge: EdgeHouse) -> None:
    """AUTH-2: a key for runs neither acknowledges nor looks into the past."""
    edge.routing.add("t1")
    async with await edge.user() as user:
        check(await user.post("/v1/operator/alerts/x:acknowledge"), 403, "forbidden")
        check(await user.get("/v1/operator/supplies/a%2Fx/health"), 403, "forbidden")
        check(await user.get("/v1/operator/tasks/t1/explanation"), 403, "forbidden")


@pytest.mark.parametrize("spelled", ["ark-main%2Fseedance", "ark-main/seedance"])
async def test_the_past_of_a_supply(edge: EdgeHouse, spelled: str) -> None:
    """HLT-12: state, reason, cooldown and the event behind it, at a time with any offset or now."""
    path = f"/v1/operator/supplies/{spelled}/health"
    async with edge.admin as admin:
        past = (await admin.get(path, params={"at": "2026-01-01T14:00:30+02:00"})).json()
        assert (past["id"], past["sort"], past["state"]) == ("ark-main/seedance", "supply", "circuit_open")
        assert (past["since"], past["cooldown_until"]) == ("2026-01-01T12:00:01Z", "2026-01-01T12:01:01Z")
        assert past["cause"] == {
            "sequence": 2, "kind": "opened", "from_state": "healthy", "to_state": "circuit_open", "epoch": 2,
            "recovery_successes": 0, "reason": "model_unavailable", "attempt_id": "a7",
            "observed_at": "2026-01-01T12:00:01Z",
        }  # fmt: skip
        assert edge.health.asked[0].at_time == at(30)
        await admin.get(path)
        assert not edge.health.asked[1].HasField("at_time")
        for wrong in ("yesterday", "2026-01-01T12:00:00"):
            check(await admin.get(path, params={"at": wrong}), 422, "validation_failed")
        check(await admin.get("/v1/operator/channels/ark-main/health"), 404, "not_found")


async def test_refusals_name_the_event_behind_them(edge: EdgeHouse) -> None:
    """SEL-24: whose health it was, the state that the round saw, and the event that had brought it there."""
    edge.routing.add("t1")
    async with edge.admin as admin:
        told = (await admin.get("/v1/operator/tasks/t1/explanation")).json()
        check(await admin.get("/v1/operator/tasks/t9/explanation"), 404, "not_found")
    assert (told["task_id"], told["steps"], told["story"]) == ("t1", ["1"], ["It was."])
    known, bare = told["refusals"]
    assert (known["supply"], known["sort"], known["id"], known["state"]) == ("a/x", "channel", "a", "circuit_open")
    assert known["cause"] == {
        "sequence": 4, "kind": "opened", "reason": "key_invalid", "attempt_id": "a9",
        "observed_at": "2026-01-01T12:00:01Z", "cooldown_until": "2026-01-01T12:05:01Z",
    }  # fmt: skip
    assert bare["cause"] is None


async def test_a_late_word_is_seen_on_the_attempt(edge: EdgeHouse) -> None:
    """COST-12, AUTH-3: what the provider said after the end, and its files, are the Task's own tenant's to read."""
    task = edge.routing.add("t1")
    digest = (await edge.blobs.put(b"film", "video/mp4")).sha256
    word = task_pb2.LateWord(
        outcome="succeeded", hear_time=at(9), cost_before=Money(currency_code="CNY", units=6),
        artifacts=[artifact_pb2.Artifact(sha256=digest, media_type="video/mp4", size_bytes=4)],
    )  # fmt: skip
    task.attempts[0].late.CopyFrom(word)
    async with await edge.user() as user:
        check(await user.get(f"/v1/artifacts/{digest}"), 404, "not_found")
        told = (await user.get("/v1/tasks/t1")).json()["attempts"]
        assert told[0]["late"] == {
            "outcome": "succeeded", "heard_at": "2026-01-01T12:00:09Z", "error": None,
            "cost_before": {"currency": "CNY", "amount": "6.00"},
            "artifacts": [
                {"sha256": digest, "media_type": "video/mp4", "bytes": 4, "url": f"/v1/artifacts/{digest}"}
            ],
        }  # fmt: skip
        assert told[1]["late"] is None
        assert (await user.get(f"/v1/artifacts/{digest}")).content == b"film"
