"""What no message from outside may hold."""

from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.struct_pb2 import ListValue, Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp
from google.type.money_pb2 import Money

from libs.faults.fault import Fault
from libs.rpc.wellformed import MOST_VALUES, check_message
from pointsman.common.v1 import failure_pb2
from pointsman.cost_quote.v1 import budget_pb2, budget_service_pb2
from pointsman.routing.v1 import task_pb2
from pointsman.runs.v1 import run_pb2, runs_service_pb2


def order(**options: Any) -> runs_service_pb2.CreateRunRequest:
    """An order with these options."""
    return runs_service_pb2.CreateRunRequest(tenant="a", model="m", options=task_pb2.TaskOptions(**options))


def held(cost: Money) -> budget_service_pb2.HoldRequest:
    """A Hold of that much."""
    return budget_service_pb2.HoldRequest(amounts=budget_pb2.Amounts(cost=cost))


def faults_of(message: Any) -> list[str]:
    """The pointers that are refused."""
    with pytest.raises(Fault) as caught:
        check_message(message)
    assert caught.value.code == "validation_failed"
    return [error.pointer for error in caught.value.errors]


@pytest.mark.parametrize(
    ("message", "pointers"),
    [
        (order(priority=77), ["/options/priority"]),
        (order(priority=-1), ["/options/priority"]),
        (runs_service_pb2.ListRunsRequest(states=[1, 77]), ["/states/1"]),
        (order(deadline_time=Timestamp(nanos=-1)), ["/options/deadline_time"]),
        (order(deadline_time=Timestamp(seconds=253_402_300_800)), ["/options/deadline_time"]),
        (runs_service_pb2.JoinRunRequest(timeout=Duration(seconds=1, nanos=-1)), ["/timeout"]),
        (held(Money(currency_code="XXXX", units=1)), ["/amounts/cost"]),
        (held(Money(currency_code="CNY", units=1, nanos=-5)), ["/amounts/cost"]),
        (runs_service_pb2.GetRunRequest(tenant="a", run_id="a\0b"), ["/run_id"]),
        (runs_service_pb2.CreateRunRequest(labels={"a/b": "\0"}), ["/labels/a~1b"]),
        (runs_service_pb2.CreateRunRequest(labels={"\0": "x"}), ["/labels"]),
        (
            runs_service_pb2.SteerRunRequest(data=Struct(fields={"x": Value(number_value=float("nan"))})),
            ["/data/fields/x/number_value"],
        ),
    ],
)
def test_what_nobody_can_read_is_refused_with_its_field(message: Any, pointers: list[str]) -> None:
    """ERR-2, EDG-3: a request that cannot mean anything is the caller's fault, never an error within."""
    assert faults_of(message) == pointers


def test_an_unknown_number_is_told_what_there_is() -> None:
    """EDG-1: the error names the remedy."""
    with pytest.raises(Fault) as caught:
        check_message(order(priority=77))
    assert "PRIORITY_HIGH" in caught.value.errors[0].reason


def test_nobody_is_made_to_look_through_a_mountain() -> None:
    """EDG-3: the look at a request is bounded, since others wait for it."""
    numbers = ListValue(values=[Value(number_value=1)] * (MOST_VALUES + 1))
    with pytest.raises(Fault) as caught:
        check_message(runs_service_pb2.SteerRunRequest(data=Struct(fields={"x": Value(list_value=numbers)})))
    assert caught.value.code == "payload_too_large"


def test_what_can_be_read_passes() -> None:
    """EDG-3: unset, zero and every value within its bounds."""
    check_message(order())
    check_message(
        order(priority=task_pb2.PRIORITY_LOW, deadline_time=Timestamp(seconds=253_402_300_799, nanos=999_999_999))
    )
    check_message(runs_service_pb2.JoinRunRequest(timeout=Duration(seconds=-1, nanos=-1)))
    check_message(held(Money(currency_code="CNY", units=-1, nanos=-5)))
    check_message(run_pb2.Run(failure=failure_pb2.Failure(message="é"), labels={"a": "b"}))
