"""A Run as callers see it."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from libs.faults.failures import failure_to_proto
from libs.faults.fault import Fault
from libs.kernel.money import Money
from libs.rpc.values import struct_from
from pointsman.routing.v1 import task_pb2
from pointsman.runs.v1 import runs_service_pb2
from services.runs.domain import event_data, hearing
from services.runs.domain.history import applied
from services.runs.domain.plan import MAIN
from services.runs.domain.reading.production import single_plan
from services.runs.domain.run import Node, Order, Run, RunState
from services.runs.wire import runs as wire

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_task_is_named_once_routing_has_it() -> None:
    """ATT-8: a Run that was cancelled before the start names no Task, for none can be read; a started one does."""
    run = Run("r", "a", RunState.PENDING, Order("clip", {}), {MAIN: Node(MAIN, "generate", task_id="t")}, NOW)
    plan = single_plan("clip", {})
    asked = replace(run, cancel_requested=True)
    cancelled = applied(asked, hearing.withdrawn(plan, asked, run.node, NOW), NOW)
    started = applied(run, hearing.submitted(run, run.node), NOW)
    named = [wire.run_to_proto(plan, seen, NOW).nodes[0].task_id for seen in (run, cancelled, started)]
    assert named == ["", "", "t"]


def test_a_failure_keeps_the_providers_words() -> None:
    """EDG-4: a Run tells why in the provider's own words too, as its Task does."""
    fault = Fault.of("material_unreachable", "unreadable", provider_message="404 for image 2")
    view = wire.task_from_proto(task_pb2.Task(id="T", failure=failure_to_proto(fault)))
    assert view.failure is not None
    assert view.failure.message == "unreadable; the provider said: 404 for image 2"


def test_an_order_is_kept_only_as_far_as_a_run_can_bear() -> None:
    """EDG-3: a prompt of many megabytes is refused: it would be read again at every step of every Run beside it."""
    borne = "x" * (wire.LARGEST_ORDER_BYTES - 1000)
    wire.refuse_oversize(runs_service_pb2.CreateRunRequest(input=struct_from({"prompt": borne})))
    with pytest.raises(Fault, match="without its materials") as caught:
        wire.refuse_oversize(runs_service_pb2.CreateRunRequest(input=struct_from({"prompt": borne + borne})))
    assert caught.value.code == "payload_too_large"


def test_a_key_is_bound_to_the_order_where_the_caller_says_no_fingerprint() -> None:
    """IDEM-1: over gRPC too another order under a key is refused; a repeat with a later deadline is the same order."""
    order = runs_service_pb2.CreateRunRequest(model="clip", input=struct_from({"prompt": "a"}), idempotency_key="k")
    later = runs_service_pb2.CreateRunRequest()
    later.CopyFrom(order)
    later.options.deadline_time.FromSeconds(1)
    other = runs_service_pb2.CreateRunRequest(model="clip", input=struct_from({"prompt": "b"}), idempotency_key="k")
    labelled = runs_service_pb2.CreateRunRequest(model="clip", input=struct_from({"prompt": "a"}), labels={"act": "1"})
    prints = [wire.fingerprint_of(each) for each in (order, later, other, labelled)]
    assert (prints[0] == prints[1], len(set(prints))) == (True, 3)
    order.fingerprint = "its own"
    assert wire.fingerprint_of(order) == "its own"


@pytest.mark.parametrize(
    ("amount", "told"),
    [("3.000000000", "3.00"), ("0", "0.00"), ("100", "100.00"), ("0.120000001", "0.120000001"), ("-4.5", "-4.50")],
)
def test_money_is_told_in_one_way(amount: str, told: str) -> None:
    """EDG-4: events spell an amount as the Run does, and lose no digit of it."""
    money = Money("CNY", Decimal(amount))
    spelt = event_data.money_json(money)
    assert spelt == {"currency": "CNY", "amount": told} == money.to_json()
    assert event_data.money(spelt) == money
