"""A call and a Run through every context, each as one trace: in one process, and in seven that speak over TCP."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan

from cli.demo.stage import free_ports
from libs.host.hosting import Host
from libs.host.placement import START_ORDER, placement
from libs.telemetry import names
from services.__main__ import BUILDERS
from services.studio.compose import Studio
from services.studio.settings import Render, StudioConfig
from tests.support.tracing import Recorded
from tests.support.visitor import Answer, Visitor
from tests.support.waiting import eventually

KEY = "pm_one_trace"
CLIP, TALK = "doubao-seedance-2-0-260128", "gpt-4o-mini"
OF_CALL, OF_RUN, OF_STREAM = "a" * 32, "b" * 32, "d" * 32
CALLER = "c" * 16
PROMPT = "a very private boat in a harbour"
CATALOG = """
version: 1
currency: CNY
fx: {{USD: '7.00'}}
channels:
  - {{id: film, adapter: ark, base_url: '{film}', secret: 'file:{keys}/aurora', poll_interval_s: 0.2}}
  - {{id: talk, adapter: openai, base_url: '{talk}', secret: 'file:{keys}/lumen'}}
supplies:
  - {{id: film/clip, channel: film, upstream_model: {CLIP}, kind: video, prices: [second],
     capabilities: {{duration_s: {{min: 4, max: 15}}}}, limits: {{concurrency: 2}},
     evidence: waived, evidence_reason: test}}
  - {{id: talk/chat, channel: talk, upstream_model: {TALK}, kind: chat, prices: [token],
     limits: {{concurrency: 2}}, evidence: waived, evidence_reason: test}}
prices:
  - {{id: second, version: 1, currency: CNY, billing_mode: per_second, rate: '1.00'}}
  - {{id: token, version: 1, currency: USD, billing_mode: per_token, input_per_million: '150',
     output_per_million: '600'}}
policies:
  - {{id: stable, order: stable_first, max_attempts: 2}}
models:
  - {{id: clip, kind: video, profile: '900', policy: stable, enabled: true, published: true,
     bindings: [{{supply: film/clip, tier: exact, priority: 1}}]}}
  - {{id: chat, kind: chat, policy: stable, enabled: true, published: true,
     bindings: [{{supply: talk/chat, tier: exact, priority: 1}}]}}
"""


@dataclass
class Play:
    """The product at work, and the spans of all of it."""

    api: Visitor
    kept: Recorded

    async def trace(self, trace_id: str, last: str) -> Sequence[ReadableSpan]:
        """The spans of one trace, once that method was served and none hangs in the air."""

        def whole() -> bool:
            found = self.kept.of_trace(trace_id)
            known = {f"{span.context.span_id:016x}" for span in found} | {CALLER}
            hanging = [span for span in found if not span.parent or f"{span.parent.span_id:016x}" not in known]
            return last in served(found) and not hanging

        await eventually(whole)
        return self.kept.of_trace(trace_id)


def layout(apart: bool, folder: Path, database: str, http: str) -> list[tuple[dict[str, str], tuple[str, ...]]]:
    """The environment and the contexts of each process."""
    env = {
        "POINTSMAN_DATABASE_URL": database,
        "POINTSMAN_DATA": str(folder / "data"),
        "POINTSMAN_ADMIN": "off",
        "POINTSMAN_ADMIN_KEY": KEY,
        "POINTSMAN_DRAIN_S": "3",
        "POINTSMAN_HTTP": http,
    }
    if not apart:
        return [(env, START_ORDER)]
    ports = free_ports(len(START_ORDER))
    peers = {f"PEER_{name.upper()}": f"127.0.0.1:{port}" for name, port in zip(START_ORDER, ports, strict=True)}
    return [(env | peers, (name,)) for name in START_ORDER]


@pytest.fixture(params=[False, True], ids=["one process", "seven over TCP"])
async def play(request: pytest.FixtureRequest, pg_url: str, tmp_path: Path) -> AsyncIterator[Play]:
    """Every context, its spans kept in memory, before the local providers."""
    kept, (http,) = Recorded(), free_ports(1)
    fast = StudioConfig.default().adjusted(queue_s=0.0, render_s=0.2)
    async with AsyncExitStack() as exits:
        studio = await exits.enter_async_context(Studio(replace(fast, render=Render(scale=0.25)), tmp_path / "studio"))
        for env, contexts in layout(request.param, tmp_path, pg_url, f"127.0.0.1:{http}"):
            host = Host(placement(env, contexts, available=BUILDERS), env, BUILDERS, export=lambda env, names: kept)
            exits.push_async_callback(host.stop)
            await host.start()
        api = await exits.enter_async_context(Visitor(f"http://127.0.0.1:{http}", KEY))
        for account in ("aurora", "lumen"):
            (tmp_path / account).write_text(studio.key(account))
        urls = {"film": studio.base_url("aurora"), "talk": studio.base_url("lumen")}
        catalog = CATALOG.format(keys=tmp_path, CLIP=CLIP, TALK=TALK, **urls)
        await api.call("POST", "/v1/operator/catalog:apply", text=catalog)
        yield Play(api, kept)


def served(trace: Sequence[ReadableSpan]) -> set[str]:
    """The methods that were served within a trace, by their contexts: `routing.Invoke`."""
    methods = [str(item.attributes.get(names.RPC_METHOD, "")) for item in trace if item.kind.name == "SERVER"]
    return {f"{method.split('.')[1]}.{method.rpartition('/')[2]}" for method in methods if method}


def named(trace: Sequence[ReadableSpan], name: str) -> list[ReadableSpan]:
    """The spans of that name."""
    return [item for item in trace if item.name == name]


async def posted(play: Play, path: str, body: dict[str, Any], trace_id: str) -> Answer:
    """The answer to a request that stands in a trace of the caller's."""
    headers = {"traceparent": f"00-{trace_id}-{CALLER}-01"}
    answer = await play.api.ask("POST", path, json=body, headers=headers)
    assert answer.status in (200, 202), answer.body
    return answer


async def test_a_stream_is_one_trace_that_ends_with_it(play: Play, caplog: pytest.LogCaptureFixture) -> None:
    """OPS-5: piece by piece through every hop; the request's span ends with the last piece, and nothing is mislaid."""
    chat = {"model": "chat", "messages": [{"role": "user", "content": PROMPT}], "stream": True}
    answer = await posted(play, "/v1/chat/completions", chat, OF_STREAM)
    assert answer.body.endswith(b"data: [DONE]\n\n")
    trace = await play.trace(OF_STREAM, "health.ReportOutcome")
    assert served(trace) >= {"routing.InvokeStream", "capacity.Reserve", "provider_adapter.InvokeStream"}
    (request,), (model,) = named(trace, "POST /v1/chat/completions"), named(trace, f"chat {TALK}")
    assert model.attributes[names.GEN_AI_STREAM] is True
    assert 0 < model.attributes[names.GEN_AI_FIRST_CHUNK] < (model.end_time - model.start_time) / 1e9
    assert request.start_time < model.start_time < model.end_time < request.end_time
    assert not [item for item in trace if names.ERROR_TYPE in item.attributes]
    assert not [record for record in caplog.records if record.name.startswith("opentelemetry")]


async def test_a_call_and_a_run_are_one_trace_each_through_every_hop(play: Play) -> None:
    """OPS-5: from the caller's span over the edge, the queue and all contexts to the model; no word of the user's."""
    chat = {"model": "chat", "messages": [{"role": "user", "content": PROMPT}]}
    answer = await posted(play, "/v1/chat/completions", chat, OF_CALL)
    call = await play.trace(OF_CALL, "health.ReportOutcome")
    assert served(call) >= {
        "routing.Invoke", "health.GetSnapshot", "capacity.GetCapacity", "cost_quote.QuoteCandidates",
        "capacity.Reserve", "provider_adapter.Invoke", "capacity.Release",
    }  # fmt: skip
    (request,), (model,) = named(call, "POST /v1/chat/completions"), named(call, f"chat {TALK}")
    assert f"{request.parent.span_id:016x}" == CALLER
    assert request.attributes[names.CALL_ID] == answer.headers["pointsman-call"]
    assert request.attributes[names.REQUEST_ID] == answer.headers["x-request-id"]
    assert model.attributes[names.GEN_AI_OUTPUT_TOKENS] == answer.json["usage"]["completion_tokens"]

    film = {"model": "clip", "input": {"prompt": PROMPT, "duration_s": 4}}
    run_id = (await posted(play, "/v1/runs", film, OF_RUN)).json["id"]
    assert (await play.api.finished(run_id))["status"] == "succeeded"
    run = await play.trace(OF_RUN, "health.ReportOutcome")
    assert served(run) >= {
        "runs.CreateRun", "routing.SubmitTask", "health.GetSnapshot", "capacity.GetCapacity",
        "cost_quote.QuoteCandidates", "capacity.Reserve", "provider_adapter.Submit", "provider_adapter.Poll",
        "capacity.Release",
    }  # fmt: skip
    assert [len(named(run, name)) for name in ("POST /v1/runs", f"generate_content {CLIP}")] == [1, 1]
    acts = [item.attributes[names.ACT] for item in named(run, names.SPAN_RUN_ADVANCE)]
    assert "submit" in acts
    assert {item.attributes[names.RUN_ID] for item in named(run, names.SPAN_TASK_ADVANCE)} == {run_id}

    told = [(item.name, item.attributes, item.events, item.status.description) for item in play.kept.spans]
    assert PROMPT not in repr(told)
    assert KEY not in repr(told)
