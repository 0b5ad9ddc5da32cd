"""What is told of a call of a model, by the names of the GenAI conventions: figures, and never a word of it."""

import json
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import pytest

from libs.faults.fault import Fault
from libs.telemetry import names
from libs.telemetry.metrics import PROCESS
from libs.telemetry.spans import continued
from services.provider_adapter.app.conversation import Conversation
from services.provider_adapter.app.invoke import InvokeCall
from services.provider_adapter.app.materials import ArtifactsOnly, Materials
from services.provider_adapter.app.media import MediaWorks
from services.provider_adapter.app.poll import PollJob
from services.provider_adapter.app.stream import Ended, StreamCall
from services.provider_adapter.app.submit import SubmitJob
from services.provider_adapter.domain.calls import Watch
from services.provider_adapter.domain.exchange import Broken, ExchangeBroken, HttpResponse
from services.provider_adapter.domain.inputs import JsonInput
from services.provider_adapter.domain.job import Endpoint, Job, Timeouts
from services.provider_adapter.settings import Settings
from services.provider_adapter.store.secrets import ReferencedSecrets
from tests.support.tracing import Recorded, recorded
from tests.support.worlds import steered_world
from tests.unit.provider_adapter.fakes import MemoryMedia, PlayedStream, PlayedTransport

ENDPOINT = Endpoint("main", "openai", "https://api.example/v1", "env:KEY", Timeouts(submit_s=30))
SECRET, PROMPT, WORDS = "sk-0123456789abcdef", "a very private question", "a very private answer"
USAGE = {
    "prompt_tokens": 12, "completion_tokens": 30, "total_tokens": 42,
    "prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens_details": {"reasoning_tokens": 5},
}  # fmt: skip
COMPLETION = {
    "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m-2026-11-01", "usage": USAGE,
    "choices": [{"index": 0, "message": {"role": "assistant", "content": WORDS}, "finish_reason": "stop"}],
}  # fmt: skip
BEFORE = {
    names.GEN_AI_OPERATION: "chat",
    names.GEN_AI_PROVIDER: "openai",
    names.GEN_AI_REQUEST_MODEL: "m",
    names.SERVER_ADDRESS: "api.example",
    names.SERVER_PORT: 443,
    names.CHANNEL: "main",
    names.ATTEMPT_ID: "attempt-1",
}
AFTER = {
    names.GEN_AI_RESPONSE_MODEL: "m-2026-11-01",
    names.GEN_AI_RESPONSE_ID: "chatcmpl-1",
    names.GEN_AI_FINISH: ("stop",),
    names.GEN_AI_INPUT_TOKENS: 12,
    names.GEN_AI_CACHED_TOKENS: 4,
    names.GEN_AI_OUTPUT_TOKENS: 30,
    names.GEN_AI_REASONING_TOKENS: 5,
}
METERS = ("operation_duration_seconds_count", "token_usage_sum", "operation_time_to_first_chunk_seconds_count")


def chat(model: str = "m") -> Job:
    """A chat with that model: of its own where its meters are looked at, which are the process's."""
    given = json.dumps({"messages": [{"role": "user", "content": PROMPT}]}).encode()
    return Job("attempt-1", "token-1", "chat", model, JsonInput(given))


def answer(status: int, document: Any) -> HttpResponse:
    """A JSON answer."""
    return HttpResponse(status, {"content-type": "application/json"}, json.dumps(document).encode())


def event(document: Any) -> bytes:
    """One event of a stream."""
    return b"data: " + json.dumps(document).encode() + b"\n\n"


class House:
    """The use-cases over a transport that plays."""

    def __init__(self, play: Any) -> None:
        self.world, self.clock = steered_world()
        self.transport = PlayedTransport([play])
        settings, store = Settings("memory"), MemoryMedia()
        talk = Conversation(self.transport, ReferencedSecrets({"KEY": SECRET}), self.clock, margin_s=0.5)
        materials = Materials(store, ArtifactsOnly(), None, self.clock, settings.material_bytes)
        media = MediaWorks(self.transport, store, self.world, settings)
        submit = SubmitJob(talk, materials, media)
        self.submit, self.poll = submit, PollJob(talk, media)
        self.invoke, self.stream = InvokeCall(talk, submit, self.clock), StreamCall(talk, materials, self.clock)

    async def heard(self, job: Job) -> list[Any]:
        """All that a stream gives, left as soon as its report is there."""
        pieces: list[Any] = []
        async with aclosing(self.stream(ENDPOINT, job, Watch())) as given:
            async for piece in given:
                pieces.append(piece)
                if isinstance(piece, Ended):
                    break
        return pieces


@pytest.fixture
def kept() -> Iterator[Recorded]:
    """The spans that are made."""
    with recorded() as made:
        yield made


def metered(model: str) -> dict[str, list[str]]:
    """The sums and counts of the GenAI meters of that model, by the metric."""
    lines = [line for line in PROCESS.page().decode().splitlines() if f'gen_ai_request_model="{model}"' in line]
    return {name: [line for line in lines if line.startswith(f"gen_ai_client_{name}")] for name in METERS}


async def test_a_call_is_told_by_the_conventions(kept: Recorded) -> None:
    """OPS-5: a CLIENT span with operation, provider, models, tokens and reason; neither prompt, answer nor key."""
    house = House(answer(200, COMPLETION))
    with continued("", names.SPAN_TASK_ADVANCE, {}):
        await house.invoke(ENDPOINT, chat(), Watch())
    span = kept.named("chat m")
    assert (span.kind.name, dict(span.attributes)) == ("CLIENT", {**BEFORE, **AFTER, names.HTTP_STATUS: 200})
    told = repr([(item.name, item.attributes, item.events, item.status.description) for item in kept.spans])
    assert not [secret for secret in (PROMPT, WORDS, SECRET) if secret in told]


async def test_a_provider_is_told_nothing_of_our_trace(kept: Recorded) -> None:
    """OPS-5: providers are foreign; what they are sent names no trace."""
    house = House(answer(200, COMPLETION))
    with continued("", names.SPAN_TASK_ADVANCE, {}):
        await house.invoke(ENDPOINT, chat(), Watch())
    ((request, _),) = house.transport.sent
    assert not {name.lower() for name in request.headers} & {"traceparent", "tracestate", "baggage"}


async def test_a_stream_is_told_with_the_time_to_its_first_piece(kept: Recorded) -> None:
    """OPS-5: streaming is said, its first piece timed, and who leaves after the report has not cancelled it."""
    first = {"id": "chatcmpl-1", "model": "m-2026-11-01", "choices": [{"index": 0, "delta": {"content": WORDS}}]}
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    parts = [event(first), event(last), event({"choices": [], "usage": USAGE}), b"data: [DONE]\n\n"]
    house = House(PlayedStream(parts, before=lambda number: None if number else house.clock.advance(0.25)))
    with continued("", names.SPAN_TASK_ADVANCE, {}):
        pieces = await house.heard(chat())
    assert isinstance(pieces[-1], Ended)
    told = {**BEFORE, **AFTER, names.GEN_AI_STREAM: True, names.GEN_AI_FIRST_CHUNK: 0.25}
    assert dict(kept.named("chat m").attributes) == told


async def test_a_failure_is_told_by_our_code(kept: Recorded) -> None:
    """OPS-5: `error.type` is the code of the registry, and the provider's words stay out."""
    house = House(answer(429, {"error": {"message": PROMPT, "type": "rate_limit_exceeded"}}))
    with continued("", names.SPAN_TASK_ADVANCE, {}), pytest.raises(Fault) as caught:
        await house.invoke(ENDPOINT, chat(), Watch())
    span = kept.named("chat m")
    assert span.attributes[names.ERROR_TYPE] == span.status.description == caught.value.code
    assert (span.status.status_code.name, span.events) == ("ERROR", ())


async def test_calls_are_metered_by_the_conventions() -> None:
    """OPS-5: duration and tokens of calls, the first piece of streams, failures by their code; without a tracer too."""
    await House(answer(200, COMPLETION)).invoke(ENDPOINT, chat("metered"), Watch())
    with pytest.raises(Fault) as caught:
        await House(ExchangeBroken(Broken.CONNECT_REFUSED)).invoke(ENDPOINT, chat("metered"), Watch())
    durations, tokens, firsts = metered("metered").values()
    assert [line.rsplit(" ", 1)[1] for line in durations] == ["1.0", "1.0"]
    assert {line.split('error_type="')[1].split('"')[0] for line in durations} == {"", caught.value.code}
    assert {line.split('token_type="')[1].split('"')[0]: line.rsplit(" ", 1)[1] for line in tokens} == {
        "input": "12.0", "output": "30.0",
    }  # fmt: skip
    assert firsts == []
    chunk = {"choices": [{"index": 0, "delta": {"content": WORDS}, "finish_reason": "stop"}]}
    await House(PlayedStream([event(chunk), b"data: [DONE]\n\n"])).heard(chat("streamed"))
    assert metered("streamed")["operation_time_to_first_chunk_seconds_count"][0].endswith(" 1.0")


async def test_a_job_is_a_submission_and_its_polls(kept: Recorded) -> None:
    """OPS-5: what a provider makes in minutes is told by short spans, which fill no meter of the conventions."""
    endpoint = Endpoint("film", "ark", "https://ark.example/api/v3", "env:KEY")
    job = Job("attempt-1", "token-1", "video", "seedance", {"prompt": PROMPT})
    with continued("", names.SPAN_TASK_ADVANCE, {}):
        await House(answer(200, {"id": "cgt-1"})).submit(endpoint, job)
        await House(answer(200, {"id": "cgt-1", "status": "running"})).poll(endpoint, job, "cgt-1")
    sent, asked = kept.named("generate_content seedance"), kept.named(names.SPAN_POLL)
    assert (sent.attributes[names.GEN_AI_OUTPUT_TYPE], sent.attributes[names.GEN_AI_PROVIDER]) == ("video", "ark")
    assert sent.attributes.items() >= asked.attributes.items()
    assert not any(metered("seedance").values())
