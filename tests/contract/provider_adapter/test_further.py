"""Second questions, and replies that have the fields of a dialect with values that nobody expects."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from libs.faults.fault import Fault
from services.provider_adapter.adapters.registry import ADAPTERS
from services.provider_adapter.domain.adapter import Page
from services.provider_adapter.domain.exchange import HttpResponse
from services.provider_adapter.domain.outcomes import Cancelled, JobState, Listed, Polled
from tests.contract.provider_adapter.test_adapters import (
    RESPONSES,
    assert_of_the_table,
    endpoint_of,
    job_of,
    outcome_of,
)

QUEUES = ("fal", "replicate", "dashscope", "openai")
FIELDS = (
    "status task_status state error error_type code message output video videos image images results result url id"
    " task_id request_id response_url seconds duration size usage metrics data total next has_more last_id prompt input"
    " has_nsfw_concepts created_at gmt_create submit_time expires_at model version detail type"
).split()
WORDS = (
    "COMPLETED IN_QUEUE succeeded completed failed canceled aborted SUCCEEDED FAILED UNKNOWN https://x.example/a E005"
).split()
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=5),
    max_leaves=14,
)
STATUSES = st.sampled_from([200, 200, 200, 201, 202, 400, 404, 422, 429, 500, 502])
HEADERS = st.sampled_from([{}, {"x-fal-billable-units": "nan"}, {"x-fal-error-type": "x"}, {"date": "soon"}])
SPOKEN = st.builds(
    HttpResponse,
    STATUSES,
    HEADERS,
    st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=8).map(lambda value: json.dumps(value).encode()),
)
ANSWERS = st.one_of(RESPONSES, SPOKEN)


def assert_a_standing(polled: Any, name: str) -> None:
    """A fault of the table, or a state with what belongs to it."""
    if isinstance(polled, Fault):
        assert_of_the_table(polled, name)
        return
    assert isinstance(polled, Polled)
    assert (polled.made is not None) == (polled.state is JobState.SUCCEEDED)
    assert (polled.failure is not None) == (polled.state is JobState.FAILED)
    if polled.failure is not None:
        assert_of_the_table(polled.failure, name)
    if polled.made is not None:
        assert polled.made.media
        assert all(media.url or media.data for media in polled.made.media)


@pytest.mark.parametrize("kind", ["video", "image"])
@given(response=ANSWERS)
def test_a_result_at_an_address_of_its_own_is_understood_or_faulted(kind: str, response: HttpResponse) -> None:
    """HLT-13 ERR-1: whatever fal answers there is a result, the job's failure, or a failed question."""
    job = job_of(kind)
    poll = ADAPTERS["fal"].poll
    assert poll is not None
    state = HttpResponse(200, {}, b'{"status": "COMPLETED", "request_id": "r-1"}')
    further = poll.parse(state, job).further
    assert further is not None
    assert further.request.method == "GET"
    assert_a_standing(outcome_of(further.parse, response, job), "fal")


@pytest.mark.parametrize("name", QUEUES)
@given(response=ANSWERS)
def test_a_poll_of_a_queue_is_a_standing_or_a_fault(name: str, response: HttpResponse) -> None:
    """HLT-13 ERR-1: no shape of a known field brings anything else about."""
    poll = ADAPTERS[name].poll
    assert poll is not None
    polled = outcome_of(poll.parse, response, job_of("video"))
    if isinstance(polled, Polled) and polled.further is not None:
        assert polled.made is None
        return
    assert_a_standing(polled, name)


@pytest.mark.parametrize("name", ("replicate", "dashscope", "openai"))
@given(response=ANSWERS)
@example(response=HttpResponse(200, {}, b'{"data": [], "results": [], "total": Infinity}'))  # no number of records
@example(response=HttpResponse(200, {}, b'{"data": [{"gmt_create": 1%s}]}' % (b"0" * 400)))  # beyond counting
@example(
    response=HttpResponse(200, {}, b'{"data": [{"created_at": NaN}], "results": [{"created_at": NaN}], "total": NaN}')
)
def test_a_page_of_records_is_a_page_or_a_fault(name: str, response: HttpResponse) -> None:
    """ATT-6: records that echo no token never claim to be ours, and each that may be is counted with its time."""
    reconcile = ADAPTERS[name].reconcile
    assert reconcile is not None
    listed = outcome_of(reconcile.parse, response, job_of("video"))
    if isinstance(listed, Fault):
        assert_of_the_table(listed, name)
        return
    assert isinstance(listed, Listed)
    assert listed.found == ""
    assert len(listed.unmarked_s) == len(listed.likely) <= listed.seen
    following = reconcile.build(job_of("video"), endpoint_of(name), Page(2, listed.after))
    assert "?" not in following.path


@pytest.mark.parametrize("name", ("fal", "replicate", "dashscope"))
@given(response=ANSWERS)
def test_a_wish_to_cancel_is_answered_or_faulted(name: str, response: HttpResponse) -> None:
    """ATT-8: a job is called stopped only where a readable 2xx says so."""
    cancel = ADAPTERS[name].cancel
    assert cancel is not None
    told = outcome_of(cancel.parse, response, job_of("video"))
    if isinstance(told, Fault):
        assert_of_the_table(told, name)
    else:
        assert isinstance(told, Cancelled)
        assert not told.cancelled or (200 <= response.status < 300 and response.body)
