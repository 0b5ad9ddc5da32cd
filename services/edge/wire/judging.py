"""Requests of the public gRPC port in the words of the HTTP routes, and what was made of them back again."""

from typing import Any

from google.protobuf.json_format import MessageToDict

from libs.faults.fault import Fault
from libs.kernel.canonical import digest
from libs.rpc.values import struct_from, struct_to_dict
from pointsman.edge.v1 import key_pb2
from pointsman.routing.v1 import routing_service_pb2
from pointsman.runs.v1 import runs_service_pb2
from services.edge.app.authenticate import Caller
from services.edge.domain.keys import Scope
from services.edge.domain.orders import Order

INNER_OPTIONS = ("supply_id", "max_attempts", "hold_id", "stage", "blocking", "blocks_release")
"""Of a Task that runs hands over; of an order nobody reads them."""


def caller(key: key_pb2.Key) -> Caller:
    """Whoever showed that key."""
    return Caller(key.tenant, frozenset(Scope(scope) for scope in key.scopes), key.id)


def order_body(request: runs_service_pb2.CreateRunRequest) -> dict[str, Any]:
    """What of an order is judged, as `POST /v1/runs` takes it."""
    body: dict[str, Any] = {"callback_url": request.callback_url} if request.callback_url else {}
    if request.model or not request.HasField("production"):
        body["model"] = request.model
    if request.HasField("input") or not request.HasField("production"):
        body["input"] = struct_to_dict(request.input)
    if request.HasField("production"):
        body["production"] = struct_to_dict(request.production)
    return body


def task_body(request: routing_service_pb2.SubmitTaskRequest) -> dict[str, Any]:
    """What of a Task is judged, as `POST /v1/runs` takes it."""
    return {"model": request.model, "input": struct_to_dict(request.input)}


def refuse_inner_options(request: runs_service_pb2.CreateRunRequest) -> None:
    """Fault validation_failed for options of a Task that a Run sets by itself: what would be ignored is refused."""
    said = [name for name in INNER_OPTIONS if getattr(request.options, name)]
    if said:
        raise Fault.invalid(*((f"/options/{name}", "is set by the run itself; leave it out") for name in said))


def put_order(request: runs_service_pb2.CreateRunRequest, order: Order) -> None:
    """Write what was made of the order into its request."""
    if order.production is not None:
        request.production.CopyFrom(struct_from(order.production))
    else:
        request.input.CopyFrom(struct_from(order.input))


def fingerprint_of(request: runs_service_pb2.CreateRunRequest) -> str:
    """What the key of an order is bound to: the caller's own fingerprint, or that of the order as it came (IDEM-1).

    A deadline is a time, which a caller works out anew for each repeat, so it does not count.
    """
    told = MessageToDict(request)
    options = told.pop("options", {})
    options.pop("deadlineTime", None)
    return request.fingerprint or digest([told, options])
