"""Every adapter keeps the contract of an adapter, whatever a provider answers."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import structs

from libs.faults.fault import Fault
from libs.faults.registry import CODES, Category, Scope
from services.provider_adapter.adapters.registry import ADAPTERS
from services.provider_adapter.domain.adapter import Adapter, Page
from services.provider_adapter.domain.calls import ANSWERED_KINDS
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse
from services.provider_adapter.domain.inputs import JsonInput
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.outcomes import JobState

INPUTS: dict[str, dict[str, Any]] = {
    "video": {
        "prompt": "a storm",
        "duration_s": 4,
        "first_frame": {"base64": "iVBORw0KGgo=", "media_type": "image/png"},
    },
    "image": {"prompt": "a storm", "size": "1024x1024", "n": 2},
    "speech": {"text": "Good evening.", "voice": "nova"},
    "chat": {"messages": [{"role": "user", "content": "a storm"}]},
    "embedding": {"input": ["a storm"]},
    "ocr": {"image": {"url": "https://media.example/a.png"}, "task": "recognize_text"},
}
KINDS = [(name, kind) for name, adapter in ADAPTERS.items() for kind in adapter.manifest.kinds]
WORKS = [(name, kind) for name, kind in KINDS if kind not in ANSWERED_KINDS]
CALLS = [(name, kind) for name, kind in KINDS if kind in ANSWERED_KINDS]
STREAMS = [(name, kind) for name, adapter in ADAPTERS.items() for kind in adapter.manifest.streamed_kinds]
QUESTIONS = [
    (name, part)
    for name, adapter in ADAPTERS.items()
    for part in ("poll", "cancel", "reconcile")
    if getattr(adapter, part) is not None
]
BODIES = st.one_of(
    st.binary(max_size=200),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=20),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["id", "status", "error", "code", "message", "data", "content", "items", "url", "total"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    ).map(lambda value: json.dumps(value).encode()),
)
RESPONSES = st.builds(
    HttpResponse,
    st.sampled_from(
        [200, 201, 202, 204, 301, 400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 524]
    ),
    st.sampled_from([{}, {"content-type": "application/json"}, {"content-type": "text/html"}, {"retry-after": "3"}]),
    BODIES,
)


def job_of(kind: str) -> Job:
    """A job of that kind."""
    return Job("attempt", "token-1", kind, "a-model", INPUTS[kind])


def call_of(kind: str) -> Job:
    """A synchronous call of that kind, as it comes over the wire."""
    return Job("attempt", "token-1", kind, "a-model", JsonInput(json.dumps(INPUTS[kind]).encode()))


def endpoint_of(name: str) -> Endpoint:
    """A channel of that adapter."""
    return Endpoint("c", name, "https://provider.example/v1", "env:KEY")


def question(adapter: Adapter, part: str) -> tuple[Job, HttpRequest]:
    """A job and the question about it."""
    job = job_of(next(kind for kind in adapter.manifest.kinds if kind not in adapter.manifest.synchronous_kinds))
    about: Any = Page(1) if part == "reconcile" else "task/../1?x"
    return job, getattr(adapter, part).build(job, endpoint_of(adapter.manifest.name), about)


@pytest.mark.parametrize("name", ADAPTERS)
def test_a_manifest_agrees_with_what_is_there(name: str) -> None:
    """CAT-6: what a manifest promises, the adapter has: a way to poll, to cancel, to reconcile."""
    adapter = ADAPTERS[name]
    manifest = adapter.manifest
    assert manifest.name == adapter.table.provider == name
    assert set(manifest.synchronous_kinds) <= set(manifest.kinds) <= set(INPUTS)
    assert (adapter.poll is not None) == (set(manifest.synchronous_kinds) < set(manifest.kinds))
    assert (adapter.cancel is not None) == manifest.cancels
    assert (adapter.reconcile is not None) == (manifest.reconcile_by in ("list", "lookup"))
    assert (adapter.submit is not None) == bool(set(manifest.kinds) - ANSWERED_KINDS)
    assert (adapter.call is not None) == bool(set(manifest.kinds) & ANSWERED_KINDS)
    assert (adapter.stream is not None) == bool(manifest.streamed_kinds)
    assert set(manifest.streamed_kinds) <= set(manifest.kinds) & ANSWERED_KINDS <= set(manifest.synchronous_kinds)
    assert not manifest.read_fields & manifest.ignored_fields
    if adapter.poll is not None:
        unspoken = {JobState.QUEUED} | (set() if manifest.cancels else {JobState.CANCELLED})
        assert set(JobState) - unspoken <= set(manifest.states.values())


@pytest.mark.parametrize(("name", "kind"), WORKS)
def test_a_submission_is_the_same_whenever_it_is_built(name: str, kind: str) -> None:
    """ATT-5 ATT-6: the same job gives the same request, on its own connection, with token, without secret."""
    adapter, job = ADAPTERS[name], job_of(kind)
    first, second = (adapter.submits(kind).build(job, endpoint_of(name)) for _ in range(2))
    assert first == second
    assert first.method == "POST"
    assert first.fresh
    sent = json.dumps(dict(first.headers)) + (first.body or b"").decode()
    assert "token-1" in sent
    assert "KEY" not in sent
    assert adapter.manifest.auth.header.lower() not in {header.lower() for header in first.headers}


@pytest.mark.parametrize(("name", "part"), QUESTIONS)
def test_a_task_id_cannot_leave_its_place(name: str, part: str) -> None:
    """ERR-4: an id from outside is one segment of a path."""
    _, request = question(ADAPTERS[name], part)
    assert ".." not in request.path.replace("%2F..%2F", "")
    assert "?" not in request.path
    if part == "cancel":
        assert request.fresh  # sent once, on its own connection: a second one might do something else
    else:
        assert request.method != "POST"


def outcome_of(parse: Callable[[HttpResponse, Job], Any], response: HttpResponse, job: Job) -> Any:
    """What an answer was read as: an outcome, or the fault that was raised."""
    try:
        return parse(response, job)
    except Fault as fault:
        return fault


def assert_of_the_table(fault: Fault, name: str) -> None:
    """The fault is one of the registry, with evidence, and keeps the table of ERR."""
    assert fault.code in CODES
    assert fault.metadata["evidence"]
    assert fault.provider == name
    if fault.category is Category.UNKNOWN:
        wanted = Scope.REQUEST if fault.code == "cancelled" else Scope.ATTEMPT  # a job that somebody's wish has ended
        assert (fault.scope, fault.retryable) == (wanted, False)
    elif fault.category in (Category.CONTENT, Category.REQUEST):
        assert (fault.scope, fault.retryable) == (Scope.REQUEST, False)
    else:
        assert fault.scope in (Scope.SUPPLY, Scope.CHANNEL)
        assert fault.retryable


@pytest.mark.parametrize(("name", "kind"), WORKS)
@given(response=RESPONSES)
def test_a_submission_is_understood_or_faulted(name: str, kind: str, response: HttpResponse) -> None:
    """ERR-1 ERR-1a: any answer is an acceptance or a fault of the table; a gateway's empty word proves nothing."""
    submitted = outcome_of(ADAPTERS[name].submits(kind).parse, response, job_of(kind))
    if not isinstance(submitted, Fault):
        assert 200 <= response.status < 300
        assert submitted.provider_task_id or submitted.made
        return
    assert_of_the_table(submitted, name)
    if not response.body.strip() and (response.status < 300 or response.status in (500, 502, 504, 524)):
        assert submitted.code == "submission_unknown"


@pytest.mark.parametrize(("name", "kind"), CALLS)
def test_a_call_is_the_same_whenever_it_is_built(name: str, kind: str) -> None:
    """SYN-1 PRF-1: the same call gives the same request, on a kept-alive connection, to one model, without secret."""
    adapter, job = ADAPTERS[name], call_of(kind)
    first, second = (adapter.calls(kind).build(job, endpoint_of(name)) for _ in range(2))
    assert first == second
    assert (first.method, first.fresh) == ("POST", False)
    assert "a-model" in first.path + (first.body or b"").decode()
    assert adapter.manifest.auth.header.lower() not in {header.lower() for header in first.headers}


@pytest.mark.parametrize(("name", "kind"), CALLS)
@given(response=RESPONSES)
def test_a_call_is_understood_or_faulted(name: str, kind: str, response: HttpResponse) -> None:
    """ERR-1 ERR-1a: any answer is an output in JSON or a fault of the table; a gateway's empty word proves nothing."""
    answered = outcome_of(ADAPTERS[name].calls(kind).parse, response, call_of(kind))
    if not isinstance(answered, Fault):
        assert 200 <= response.status < 300
        assert isinstance(json.loads(answered.output), dict)
        return
    assert_of_the_table(answered, name)
    if not response.body.strip() and (response.status < 300 or response.status in (500, 502, 504, 524)):
        assert answered.code == "submission_unknown"


EVENTS = st.lists(
    st.one_of(BODIES.map(lambda body: b"data: " + body + b"\n\n"), st.binary(max_size=40)), max_size=4
).map(b"".join)


@pytest.mark.parametrize(("name", "kind"), STREAMS)
@given(body=EVENTS, cut=st.integers(0, 200))
def test_a_stream_is_read_alike_however_it_is_cut(name: str, kind: str, body: bytes, cut: int) -> None:
    """SYN-8 ERR-1: whatever comes gives pieces in JSON, an end or a fault of the table; the same by bytes and whole."""
    adapter, job = ADAPTERS[name], call_of(kind)
    ends = []
    for parts in ([body], [body[:cut], body[cut:]], [body[index : index + 1] for index in range(len(body))]):
        reader = adapter.streams(kind).reader(job, {"content-type": "text/event-stream"})
        pieces = [piece for part in parts if part for piece in reader.feed(part)] + reader.close()
        assert all(isinstance(json.loads(piece.chunk), dict) for piece in pieces)
        fault = None if reader.ended else reader.failure or reader.unfinished()
        if fault is not None:
            assert_of_the_table(fault, name)
        ends.append((pieces, reader.ended, fault, reader.report()))
    assert ends[0] == ends[1] == ends[2]


@pytest.mark.parametrize(("name", "part"), QUESTIONS)
@given(response=RESPONSES)
@example(response=HttpResponse(200, {}, b'{"":null,"x":{"status":"\\u00b2\\u00b2\\u00b2"}}'))  # digits, no number
def test_a_question_is_answered_or_faulted(name: str, part: str, response: HttpResponse) -> None:
    """HLT-13: an HTTP error of a question is never a verdict on the job, and nothing but a Fault is raised."""
    adapter = ADAPTERS[name]
    job, _ = question(adapter, part)
    answered = outcome_of(getattr(adapter, part).parse, response, job)
    if isinstance(answered, Fault):
        assert_of_the_table(answered, name)
        if response.status >= 400 and not adapter.table.errors_of_polls_judge:
            assert answered.code == "poll_failed"


SOUND = {"ark": "generate_audio", "kling": "sound", "fal": "generate_audio", "replicate": "generate_audio",
         "vidu": "audio"}  # fmt: skip


@pytest.mark.parametrize("name", [name for name, kind in WORKS if kind == "video"])
@pytest.mark.parametrize("wanted", [True, False])
def test_sound_is_told_or_refused_and_never_passed_over(name: str, wanted: bool) -> None:
    """SEL-5: a clip with sound, or without, is asked for in the dialect's own word; without a word it is refused."""
    job = structs.replace(job_of("video"), input={"prompt": "a storm", "duration_s": 4, "audio": wanted})
    submit = ADAPTERS[name].submits("video")
    if name not in SOUND:
        with pytest.raises(Fault) as caught:
            submit.build(job, endpoint_of(name))
        assert [error.pointer for error in caught.value.errors] == ["/input/audio"]
        return
    body = json.loads(submit.build(job, endpoint_of(name)).body)
    told = body.get("input", body)[SOUND[name]]
    assert told == ({True: "on", False: "off"}[wanted] if name == "kling" else wanted)
    unsaid = submit.build(structs.replace(job, input={"prompt": "a storm"}), endpoint_of(name)).body
    assert SOUND[name].encode() not in unsaid
