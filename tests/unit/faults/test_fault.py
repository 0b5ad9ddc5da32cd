"""Fault as a value, on the wire and as data."""

import copy
import pickle

import grpc
import pytest
from google.protobuf import any_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc import aio
from hypothesis import given
from hypothesis import strategies as st

from libs.faults import failures, wire
from libs.faults.fault import Fault, FieldError
from libs.faults.registry import CODES, Category, Scope

WORDS = st.text(st.characters(categories=["L"], max_codepoint=0x4FF), max_size=20)
FAULTS = st.builds(
    Fault,
    st.sampled_from(sorted(CODES)) | st.from_regex(r"[a-z]{3,12}_later", fullmatch=True),
    WORDS,
    category=st.sampled_from(Category),
    scope=st.sampled_from(Scope),
    retryable=st.booleans(),
    retry_after_ms=st.none() | st.integers(0, 10**7),
    provider=WORDS,
    provider_code=WORDS,
    provider_message=WORDS,
    errors=st.lists(st.builds(FieldError, WORDS, WORDS), max_size=3).map(tuple),
    metadata=st.dictionaries(st.sampled_from(["gate", "supply", "evidence"]), WORDS, max_size=3),
)


@given(FAULTS)
def test_a_fault_survives_the_wire(fault: Fault):
    """ERR-2: reason, category, scope, retryable, retry delay, fields and provider facts cross gRPC unchanged."""
    assert wire.from_status(status_pb2.Status.FromString(wire.to_status(fault).SerializeToString())) == fault


@given(FAULTS)
def test_a_fault_survives_a_store_and_a_process(fault: Fault):
    """A Failure read back equals the fault that was stored; so does a pickled one."""
    assert Fault.from_json(fault.to_json()) == fault
    assert pickle.loads(pickle.dumps(fault)) == fault
    assert copy.copy(fault) == fault


@given(FAULTS)
def test_a_fault_survives_as_a_failure_message(fault: Fault):
    """common.v1.Failure keeps everything but field errors and metadata beyond the evidence."""
    evidence = {key: value for key, value in fault.metadata.items() if key == "evidence" and value}
    expected = fault.replaced(errors=(), metadata=evidence)
    assert failures.failure_from_proto(failures.failure_to_proto(fault)) == expected


def test_a_sentence_ends_with_the_providers_words():
    """EDG-4: what the provider said is told once, without secrets; where it said nothing, our sentence stands alone."""
    fault = Fault.of("material_unreachable", "unreadable", provider_message="404, Authorization: Bearer abcdefghijklmn")
    told = failures.sentence(fault)
    assert told.startswith("unreadable; the provider said: 404")
    assert "abcdefghijklmn" not in told
    assert failures.sentence(fault.replaced(provider_message="")) == "unreadable"
    assert failures.sentence(fault.replaced(provider_message="unreadable")) == "unreadable"


def test_defaults_come_from_the_registry():
    """What the raiser does not say, the registry says; an unknown code is refused where it is raised."""
    fault = Fault.of("key_invalid", "401 from ark-main", provider="ark")
    assert (fault.category, fault.scope, fault.retryable) == (Category.SUPPLY, Scope.CHANNEL, True)
    assert Fault.of("not_found").message == CODES["not_found"].title
    with pytest.raises(KeyError):
        Fault.of("no_such_code")


def test_a_fault_of_the_whole_body_reads_as_a_sentence() -> None:
    """EDG-1: the pointer to the whole document is the empty text, which says nothing in a sentence."""
    fault = Fault.invalid(("", "must be an object"))
    assert (fault.message, fault.errors[0].pointer) == ("the body must be an object", "")


def test_a_refusal_names_its_fields():
    """EDG-1: validation faults carry JSON pointer and reason."""
    fault = Fault.invalid(("/input/prompt", "is required"), ("/input/seed", "must be positive"))
    assert fault.errors == (FieldError("/input/prompt", "is required"), FieldError("/input/seed", "must be positive"))
    assert fault.message == "/input/prompt is required; /input/seed must be positive"


def error_with(status: status_pb2.Status | None, code: grpc.StatusCode, details: str = "") -> aio.AioRpcError:
    """A failed call as a client sees it."""
    trailing = aio.Metadata()
    if status is not None:
        trailing.add(wire.STATUS_DETAILS_KEY, status.SerializeToString())
    return aio.AioRpcError(code, aio.Metadata(), trailing, details)


def test_a_reason_from_a_later_release_survives():
    """ERR-3: clients survive new codes, and new categories and scopes with them."""
    info = error_details_pb2.ErrorInfo(
        reason="moon_phase", domain="pointsman", metadata={"category": "astral", "scope": "galaxy", "retryable": "true"}
    )
    packed = any_pb2.Any()
    packed.Pack(info)
    status = status_pb2.Status(code=code_pb2.UNAVAILABLE, message="waning", details=[packed])
    fault = wire.from_rpc_error(error_with(status, grpc.StatusCode.UNAVAILABLE))
    assert (fault.code, fault.category, fault.scope, fault.retryable) == ("moon_phase", "unknown", "request", True)
    assert wire.grpc_status_of(fault) is grpc.StatusCode.ABORTED


@pytest.mark.parametrize(
    "status, code",
    [
        (grpc.StatusCode.UNAVAILABLE, "peer_unavailable"),
        (grpc.StatusCode.DEADLINE_EXCEEDED, "deadline_exceeded"),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "transport_limit"),
        (grpc.StatusCode.UNIMPLEMENTED, "unimplemented"),
        (grpc.StatusCode.CANCELLED, "cancelled"),
        (grpc.StatusCode.UNKNOWN, "internal"),
        (grpc.StatusCode.UNAUTHENTICATED, "unauthenticated"),
    ],
)
def test_a_status_without_a_reason_is_the_transport_s_own(status: grpc.StatusCode, code: str):
    """ERR-2: without ErrorInfo the canonical status decides, and its text goes to metadata, not to the caller."""
    fault = wire.from_rpc_error(error_with(None, status, "socket closed"))
    assert fault.code == code
    assert fault.message == CODES[code].title
    assert fault.metadata == {"transport_status": status.name, "transport_text": "socket closed"}


def test_every_canonical_status_has_a_meaning():
    """No status of gRPC is left to chance."""
    assert set(wire._TRANSPORT_CODES) == {code.name for code in grpc.StatusCode} - {"OK"}


def test_details_that_are_no_status_or_not_ours_are_survived():
    """A foreign peer may put anything into the details: then the canonical status has to do."""
    broken = aio.AioRpcError(
        grpc.StatusCode.NOT_FOUND, aio.Metadata(), aio.Metadata((wire.STATUS_DETAILS_KEY, b"\xff\xff\xff")), "x"
    )
    assert wire.from_rpc_error(broken).code == "not_found"
    packed = any_pb2.Any()
    packed.Pack(error_details_pb2.ErrorInfo(reason="quota", domain="elsewhere.example"))
    foreign = status_pb2.Status(code=code_pb2.NOT_FOUND, details=[packed])
    assert wire.from_rpc_error(error_with(foreign, grpc.StatusCode.NOT_FOUND)).code == "not_found"


def test_secrets_do_not_leave_in_a_fault():
    """ERR-4: message, provider message and field reasons are redacted on the way out, and bounded."""
    fault = Fault.of(
        "provider_error",
        "GET https://cdn.example/x?Signature=abc123 failed",
        provider_message="invalid key sk-abcdefghijklmnop " + "x" * 5000,
        errors=(FieldError("/a", "Bearer abcdefghijklmnop"),),
    )
    sent = wire.from_status(wire.to_status(fault))
    text = repr(sent.to_json())
    assert "abc123" not in text
    assert "abcdefghijklmnop" not in text
    assert len(wire.to_status(fault).SerializeToString()) < 4096
