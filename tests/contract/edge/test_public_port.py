"""What the public gRPC port makes of a request before any method begins."""

from pointsman.runs.v1 import runs_service_pb2
from pointsman.runs.v1.runs_service_pb2_grpc import RunsServiceStub
from tests.contract.edge.house import ADMIN_KEY, EdgeHouse
from tests.contract.edge.port import Port


async def test_what_nobody_can_read_stops_at_the_port(edge: EdgeHouse, port: Port) -> None:
    """ERR-2: an unknown enumerator is the caller's fault with its field, for operators too; no method begins."""
    _, users = await edge.key("a")
    for key in (ADMIN_KEY, users):
        asked = runs_service_pb2.ListRunsRequest(tenant="a", states=[77])
        fault = await port.fault(RunsServiceStub, "ListRuns", asked, key)
        assert (fault.code, fault.errors[0].pointer) == ("validation_failed", "/states/0")


async def test_who_acts_is_who_has_the_key(edge: EdgeHouse, port: Port) -> None:
    """HUMAN-2, AUTH-1: a user's command goes into the history under its key, whatever the request says."""
    key_id, key = await edge.key("a")
    order = runs_service_pb2.CreateRunRequest(tenant="a", model="m")
    made = await port.ask(RunsServiceStub, "CreateRun", order, key)
    asked = runs_service_pb2.PauseRunRequest(run_id=made.run.id, tenant="a", actor="somebody else")
    await port.ask(RunsServiceStub, "PauseRun", asked, key)
    assert edge.runs.actors == [key_id]
