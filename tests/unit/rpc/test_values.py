"""JSON objects and lengths of time through the wire's own messages."""

from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from libs.faults.fault import Fault
from libs.kernel.canonical import plain
from libs.rpc.values import nanos_to_proto, seconds_of, struct_from, struct_to_dict, time_from_proto

LEAVES = st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(-1e300, 1e300) | st.text()
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3))


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_a_json_object_comes_back_as_it_was(value: dict[str, Any]) -> None:
    """EDG-3: every JSON value, at any depth; whole numbers are integers again, as protobuf's own way has it too."""
    message = Struct.FromString(struct_from(value).SerializeToString())
    assert struct_to_dict(message) == plain(value) == plain(MessageToDict(message))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_number_of_json_is_none(value: float) -> None:
    """EDG-3: such a number is refused, not handed on."""
    message = Struct()
    message.fields["x"].number_value = value
    with pytest.raises(Fault, match="no number of JSON") as caught:
        struct_to_dict(message)
    assert caught.value.code == "validation_failed"


@pytest.mark.parametrize("stamp", [Timestamp(seconds=2**62), Timestamp(seconds=-(2**62)), Timestamp(nanos=-1)])
def test_what_is_no_time_is_refused(stamp: Timestamp) -> None:
    """EDG-3: a time that no calendar has is the caller's mistake."""
    with pytest.raises(Fault, match="no calendar has") as caught:
        time_from_proto(stamp, "/expire_time")
    assert (caught.value.code, caught.value.errors[0].pointer) == ("validation_failed", "/expire_time")


@given(st.integers(-(10**18), 10**18))
def test_a_length_of_time_is_protobufs_own(nanos: int) -> None:
    """PRF-1: what is reckoned by hand is what protobuf reckons, to the nano."""
    theirs = Duration()
    theirs.FromNanoseconds(nanos)
    assert nanos_to_proto(nanos) == theirs
    assert seconds_of(theirs) == pytest.approx(nanos / 10**9)
