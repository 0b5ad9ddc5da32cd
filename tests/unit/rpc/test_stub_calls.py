"""Generated stubs against grpcio-testing: which method they call, with what, and under which timeout.

grpcio-testing knows the synchronous stubs alone (docs/decisions/0003-grpcio-testing.md); what it can show of generated
code holds for the asynchronous stubs too, because both are made from the same lines.
"""

import threading
from typing import Any

import grpc
import grpc_testing
import pytest

from libs.faults.wire import from_rpc_error
from pointsman.health.v1 import health_service_pb2, health_service_pb2_grpc

HEALTH = health_service_pb2.DESCRIPTOR.services_by_name["HealthService"]
SNAPSHOT = HEALTH.methods_by_name["GetSnapshot"]


class Asking:
    """A stub's call in a thread of its own, because a synchronous stub blocks until it is answered."""

    def __init__(self, stub: Any, timeout: float) -> None:
        self.answer: Any = None
        self.error: grpc.RpcError | None = None
        self._thread = threading.Thread(target=self._ask, args=(stub, timeout))
        self._thread.start()

    def _ask(self, stub: Any, timeout: float) -> None:
        try:
            self.answer = stub.GetSnapshot(health_service_pb2.GetSnapshotRequest(), timeout=timeout)
        except grpc.RpcError as error:
            self.error = error

    def wait(self) -> None:
        """Until the stub has returned."""
        self._thread.join(20)
        assert not self._thread.is_alive()


@pytest.fixture
def channel() -> Any:
    """A channel that answers by hand."""
    return grpc_testing.channel([HEALTH], grpc_testing.strict_fake_time(0))


def test_a_stub_calls_the_method_of_its_contract(channel: Any):
    """Method, request and timeout are what the generated code was given; the answer comes back."""
    asking = Asking(health_service_pb2_grpc.HealthServiceStub(channel), timeout=2.5)
    _, request, rpc = channel.take_unary_unary(SNAPSHOT)
    assert request == health_service_pb2.GetSnapshotRequest()
    rpc.send_initial_metadata(())
    rpc.terminate(health_service_pb2.GetSnapshotResponse(), (), grpc.StatusCode.OK, "")
    asking.wait()
    assert asking.answer == health_service_pb2.GetSnapshotResponse()


def test_a_synchronous_stub_s_error_is_read_as_a_fault_too(channel: Any):
    """ERR-2: an internal system with a synchronous stub reads the same faults from the same errors."""
    asking = Asking(health_service_pb2_grpc.HealthServiceStub(channel), timeout=2.5)
    _, _, rpc = channel.take_unary_unary(SNAPSHOT)
    rpc.send_initial_metadata(())
    rpc.terminate(None, (), grpc.StatusCode.UNAVAILABLE, "gone")
    asking.wait()
    assert asking.error is not None
    assert from_rpc_error(asking.error).code == "peer_unavailable"
