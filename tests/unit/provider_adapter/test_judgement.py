"""What single replies prove, beyond the corpus: wordings that must not be mistaken, and the laws of phases."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.faults.fault import Fault
from libs.faults.registry import Category
from services.provider_adapter.adapters.registry import GENERIC
from services.provider_adapter.domain.exchange import BEFORE_SENDING, Broken, Phase, Reply
from services.provider_adapter.domain.judgement import judge
from services.provider_adapter.domain.table import FaultTable, Row

NOW = datetime(2026, 11, 30, tzinfo=UTC)


def judged(status: int, body: Any = "", phase: Phase = Phase.SUBMIT, **more: Any) -> Fault:
    """The judgement of a provider without a table."""
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return judge(Reply(status, more.pop("headers", {}), raw), phase, more.pop("table", GENERIC), NOW, **more)


def says(text: str) -> dict[str, Any]:
    """An error that has words only."""
    return {"error": {"message": text}}


@pytest.mark.parametrize(
    ("status", "text", "code"),
    [
        (400, "Parameter names are case-sensitive", "invalid_request"),
        (400, "Please upload a valid image file", "invalid_request"),
        (400, "The image url provided cannot be downloaded", "material_unreachable"),
        (500, "Failed to download image from the given address", "material_unreachable"),
        (500, "An error occurred, please try again later", "provider_error"),
        (500, "Input validation error: prompt must be a string", "invalid_request"),
        (403, "This service is not available in your country", "account_forbidden"),
        (403, "Your account balance is insufficient", "balance_exhausted"),
        (429, "Account balance insufficient, please recharge", "balance_exhausted"),
        (400, "Your credit balance is too low to access the API", "balance_exhausted"),
        (503, "The engine is currently overloaded", "rate_limited"),
        (400, "Prompt contains a celebrity name", "real_person_rejected"),
        (400, "The prompt violates our content policy", "content_rejected"),
        (404, "Model foo-9 does not exist", "model_unavailable"),
        (400, "proxy.ContentPolicyViolationError: no", "content_rejected"),
        (400, "budget_exceeded", "balance_exhausted"),
        (404, "Cannot POST /v9/videos", "connect_failed"),
        (400, "too many tokens: size limit exceeded", "invalid_request"),
        (400, "Invalid schema for response_format 'tree': it requires itself without an end", "invalid_request"),
        (400, "Invalid schema for function 'f': schema must have type 'object'", "invalid_request"),
        (403, "Unable to impersonate service account: permission denied", "account_forbidden"),
        (400, "Model foo-9 has been deprecated", "model_unavailable"),
        (401, "nobody said why", "key_invalid"),
        (402, "nobody said why", "balance_exhausted"),
        (429, "nobody said why", "rate_limited"),
        (413, "nobody said why", "invalid_request"),
    ],
)
def test_words_of_providers_that_have_no_table(status: int, text: str, code: str) -> None:
    """ERR-1: general wording, then the status."""
    assert judged(status, says(text)).code == code


@pytest.mark.parametrize(
    ("param", "text", "code", "evidence"),
    [
        ("age", "the image violates our usage policies", "content_rejected", "body.error.message"),
        ("model", "The model foo-9 does not exist", "model_unavailable", "body.error.message"),
        ("banned", "your account banned is no number", "invalid_request", "status 400"),
    ],
)
def test_a_named_field_takes_away_no_more_than_itself(param: str, text: str, code: str, evidence: str) -> None:
    """ERR-1: the field that a reply names is a word of its own, and says nothing; the words around it are proof."""
    fault = judged(400, {"error": {"message": text, "param": param}})
    assert (fault.code, fault.metadata["evidence"]) == (code, evidence)


@pytest.mark.parametrize("status", [502, 504, 520, 521, 522, 523, 524, 525, 526])
@pytest.mark.parametrize("body", ["", "<html>bad gateway</html>", "error", says("internal error"), says("unavailable")])
def test_a_gateway_proves_nothing(status: int, body: Any) -> None:
    """ERR-1a: 502, 504 and 52x, also as a page and with weak words, leave a submission unknown."""
    fault = judged(status, body)
    assert (fault.code, fault.category, fault.retryable) == ("submission_unknown", Category.UNKNOWN, False)


def test_a_gateways_status_with_the_applications_own_word_is_believed() -> None:
    """ERR-1a: bare is what it must be; an application that says that the queue is full has not taken the job."""
    assert judged(504, {"error_type": "runner_scheduling_failure", "detail": "No runner"}).code == "out_of_stock"


@pytest.mark.parametrize("how", Broken)
def test_the_transport_decides_by_whether_bytes_have_left(how: Broken) -> None:
    """ERR-1a: before a connection nothing was submitted, after it nobody knows; a question is a question."""
    reply = Reply(transport_error=how.value)
    submit = judge(reply, Phase.SUBMIT, GENERIC, NOW)
    assert (submit.category is Category.UNKNOWN) == (how not in BEFORE_SENDING)
    poll = judge(reply, Phase.POLL, GENERIC, NOW)
    assert (poll.code, poll.category) == ("poll_failed", Category.UNKNOWN)


def test_the_same_404_means_the_model_on_submit_and_the_task_on_poll() -> None:
    """ERR-1: phase is evidence."""
    body = {"error": {"code": "NotFound", "message": "nothing here"}}
    assert judged(404, body).code == "model_unavailable"
    poll = judged(404, body, Phase.POLL)
    assert (poll.code, poll.metadata["reason"]) == ("poll_failed", "task_lost")


def test_the_order_of_evidence() -> None:
    """ERR-1: table over words, body over header, header over message, words over status; each is named."""
    table = FaultTable("p", (Row("E42", "out_of_stock"), Row("sold", "balance_exhausted")), headers=("x-error",))
    body = {"error": {"code": "E42", "message": "invalid api key"}}
    first = judged(400, body, table=table, headers={"x-error": "sold"})
    assert (first.code, first.metadata["evidence"]) == ("out_of_stock", "body.error.code")
    second = judged(400, says("invalid api key"), table=table, headers={"x-error": "sold"})
    assert (second.code, second.metadata["evidence"]) == ("balance_exhausted", "header.x-error")
    third = judged(400, says("invalid api key"), table=table)
    assert (third.code, third.metadata["evidence"]) == ("key_invalid", "body.error.message")
    fourth = judged(402, says("hm"), table=table)
    assert (fourth.code, fourth.metadata["evidence"]) == ("balance_exhausted", "status 402")


def test_a_readable_answer_of_the_wrong_shape() -> None:
    """ERR-1a: for a job that could go on unseen it proves nothing; a synchronous kind has none, so it is malformed."""
    assert judged(200, {"hello": 1}).code == "submission_unknown"
    assert judged(200, {"hello": 1}, synchronous=True).code == "malformed_reply"
    assert judged(200, '{"cut": ', synchronous=True).code == "submission_unknown"


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("connection_refused", Category.SUPPLY),
        ("ECONNREFUSED", Category.SUPPLY),
        ("getaddrinfo ENOTFOUND", Category.SUPPLY),
        ("certificate_verify_failed", Category.SUPPLY),
        ("ConnectTimeout", Category.SUPPLY),
        ("ReadTimeout", Category.UNKNOWN),
        ("timeout", Category.UNKNOWN),
        ("tls_eof_in_body", Category.UNKNOWN),
        ("nobody knows", Category.UNKNOWN),
    ],
)
def test_how_it_broke_in_the_words_of_other_clients(name: str, category: Category) -> None:
    """ERR-1a: only a word for a connection that never came about frees a submission; any other word leaves it open."""
    assert judge(Reply(transport_error=name), Phase.SUBMIT, GENERIC, NOW).category is category


def test_a_refused_question_under_a_200_is_no_verdict() -> None:
    """HLT-13: a 200 without a state that says "too fast" or "no key" is about the question; with a state, the job."""
    for body, reason in (
        ({"code": 429, "msg": "too fast"}, "rate_limited"),
        ({"code": 401, "msg": "x"}, "key_invalid"),
    ):
        fault = judged(200, body, Phase.POLL)
        assert (fault.code, fault.metadata["reason"]) == ("poll_failed", reason)
    assert judged(200, {"status": "failed", "error": "insufficient balance"}, Phase.POLL).code == "balance_exhausted"
    assert judged(200, {"done": True, "error": {"code": 8, "message": "Resource exhausted"}}, Phase.POLL).code == (
        "rate_limited"
    )


def test_a_job_that_failed_by_a_lost_call_of_its_own_has_failed() -> None:
    """ERR-1: what is unknown inside the provider is known of the job: it failed, and that is the supply's."""
    fault = judged(200, {"status": "failed", "error": "upstream request timeout"}, Phase.POLL)
    assert (fault.code, fault.category) == ("provider_error", Category.SUPPLY)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"detail": "Request was throttled", "retry_after": 7}, 7000),
        ({"error": {"message": "x", "details": [{"@type": "RetryInfo", "retryDelay": "34.4s"}]}}, 34_400),
        ({"error": {"retry_after_ms": 250}}, 250),
        ({"error": "slow down"}, None),
    ],
)
def test_a_wait_that_the_body_tells(body: Any, expected: int | None) -> None:
    """CAP-7 ERR-2: providers without a header say it in a field."""
    assert judged(429, body).retry_after_ms == expected


def test_a_size_is_no_rate() -> None:
    """ERR-1: 413 is about this one request, also where the code beside it says "rate limit"."""
    assert judged(413, {"error": {"code": "rate_limit_exceeded", "message": "TPM"}}).code == "invalid_request"


@given(st.integers(100, 599), st.binary(max_size=100), st.sampled_from(Phase), st.booleans())
def test_every_reply_is_judged(status: int, body: bytes, phase: Phase, synchronous: bool) -> None:
    """ERR-1: total; unknown is never retryable, content and request neither; supply and capacity always."""
    fault = judge(Reply(status, {}, body), phase, GENERIC, NOW, synchronous=synchronous)
    assert fault.retryable == (fault.category in (Category.SUPPLY, Category.CAPACITY))
    assert fault.metadata["evidence"]
