"""What operators read of other people's Runs: whoever's they are, and nothing that changes one."""

from libs.faults.fault import Fault
from pointsman.runs.v1 import run_pb2
from tests.contract.edge.house import EdgeHouse
from tests.contract.edge.test_problems import check


async def test_an_operator_lists_runs_of_every_tenant(edge: EdgeHouse) -> None:
    """OPS-6: whoever is called to an alert finds the Run: of one tenant or of all, by status, label and page."""
    edge.runs.add("r1", "acme", labels={"act": "one"})
    edge.runs.add("r2", "zenith", state=run_pb2.RunState.RUN_STATE_FAILED)
    edge.runs.add("r3", "acme", state=run_pb2.RunState.RUN_STATE_FAILED)

    async with await edge.user("ops", "operate") as operator:

        async def found(**query: str) -> list[str]:
            answer = await operator.get("/v1/operator/runs", params=query)
            return [f"{run['tenant']} {run['id']}" for run in answer.json()["runs"]]

        assert await found() == ["acme r3", "zenith r2", "acme r1"]
        assert await found(tenant="acme") == ["acme r3", "acme r1"]
        assert await found(tenant="acme", status="failed") == ["acme r3"]
        assert await found(label="act=one") == ["acme r1"]
        assert await found(tenant="nobody") == []
        first = (await operator.get("/v1/operator/runs", params={"page_size": 2})).json()
        assert await found(page_token=first["next_page_token"]) == ["acme r1"]
        check(await operator.get("/v1/operator/runs?status=done"), 422, "validation_failed")
        check(await operator.get("/v1/operator/runs?page_token=bad"), 400, "malformed_request")


async def test_an_operator_reads_a_run_as_its_tenant_does(edge: EdgeHouse) -> None:
    """OPS-6: nodes, faults and events are those that the tenant is shown, and whose Run it is stands beside them."""
    edge.runs.add("r1", "acme")
    edge.runs.fail("r1", Fault.of("supply_unavailable", "nobody serves it"))
    async with await edge.user("acme") as owner, await edge.user("ops", "operate") as operator:
        own, told = await owner.get("/v1/runs/r1"), await operator.get("/v1/operator/runs/r1")
        assert told.json() == {**own.json(), "tenant": "acme"}
        assert told.json()["error"]["code"] == "supply_unavailable"
        events = await operator.get("/v1/operator/runs/r1/events", params={"after": 1, "limit": 1})
        assert events.json() == (await owner.get("/v1/runs/r1/events", params={"after": 1})).json()
        assert [event["kind"] for event in events.json()["events"]] == ["run_failed"]
        for path in ("/v1/operator/runs/r9", "/v1/operator/runs/r9/events"):
            check(await operator.get(path), 404, "not_found")
        check(await operator.get("/v1/operator/runs/r1/events?after=7"), 400, "malformed_request")


async def test_reading_is_all_that_an_operator_may_do(edge: EdgeHouse) -> None:
    """AUTH-1: a Run is paused, steered and cancelled by its own tenant alone, and no operator's route does it."""
    edge.runs.add("r1", "acme")
    async with edge.admin as admin:
        for deed in ("pause", "cancel", "steer", "resume"):
            body = {"json": {"kind": "style", "data": {"text": "x"}}} if deed == "steer" else {}
            told = await admin.post(f"/v1/operator/runs/r1/{deed}", **body)
            assert told.status_code in (404, 405), deed
    assert edge.runs.runs["r1"].state == run_pb2.RunState.RUN_STATE_PENDING
    assert edge.runs.commanded == []
