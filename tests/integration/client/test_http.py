"""The client over HTTP: against a server that answers as it is told, and against the edge itself."""

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest

from libs.client.faults import Problem, RunUnsuccessful, Unreachable
from libs.client.http import Client
from libs.client.retrying import Patience
from libs.client.sending import Means
from libs.client.shapes import Amount
from libs.faults.fault import Fault
from tests.contract.edge.house import edge_house
from tests.integration.client.server import DROP, Answer, Script, refused, serving
from tests.support.media import picture
from tests.unit.client.test_events import spelt

RUN = {"id": "R1", "status": "succeeded", "novelty": {"of": "tomorrow"}}


class Sleeper:
    """Means that wait for nobody and remember for how long they would have."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self.now_s = 0.0
        self.means = Means(self.sleep, lambda: 0.5, lambda: self.now_s)

    async def sleep(self, seconds: float) -> None:
        """Let the time pass."""
        self.slept.append(seconds)
        self.now_s += seconds


def calling(script: Script, sleeper: Sleeper, **more: Any) -> Client:
    """A client of that server."""
    patience = Patience(tries=4, first_s=1.0, longest_s=8.0, total_s=60.0)
    return Client(script.url, "pm_key", patience=patience, means=sleeper.means, new_key=lambda: "made-up", **more)


async def test_a_create_is_repeated_under_one_key() -> None:
    """CLIENT-1: cut connections and 503 repeat a create with the same key and the same bytes; Retry-After is kept."""
    sleeper = Sleeper()
    steps = (DROP, refused("overloaded", 503, retry_after="7"), Answer(502, b"<html>"), Answer(202, RUN))
    async with serving(*steps) as script, calling(script, sleeper) as client:
        run = await client.create_run("clip", {"prompt": "a lake"}, labels={"act": "1"})
    assert (run.id, run.status) == ("R1", "succeeded")
    assert len(script.asked) == 4
    assert {headers["idempotency-key"] for _, _, headers, _ in script.asked} == {"made-up"}
    assert len({body for _, _, _, body in script.asked}) == 1
    assert sleeper.slept == [0.5, 8.0, 2.0]


@pytest.mark.parametrize(
    "code, status", [("validation_failed", 422), ("forbidden", 403), ("unauthenticated", 401), ("not_found", 404),
                     ("idempotency_conflict", 422), ("internal", 500), ("a_code_of_tomorrow", 418)]
)  # fmt: skip
async def test_what_cannot_become_better_is_not_repeated(code: str, status: int) -> None:
    """CLIENT-1: schema and permission errors, bugs and what is not known are raised at once."""
    sleeper = Sleeper()
    step = refused(code, status, retryable=False)
    async with serving(step) as script, calling(script, sleeper) as client:
        with pytest.raises(Problem) as caught:
            await client.create_run("clip", {})
    assert (caught.value.code, caught.value.status, len(script.asked)) == (code, status, 1)


async def test_patience_ends() -> None:
    """CLIENT-1: tries are bounded, and a Retry-After beyond the time that is left is not waited for."""
    sleeper = Sleeper()
    async with serving(refused("quota_exceeded", 429)) as script, calling(script, sleeper) as client:
        with pytest.raises(Problem):
            await client.get_run("R1")
        assert (len(script.asked), len(sleeper.slept)) == (4, 3)
    async with (
        serving(refused("quota_exceeded", 429, retry_after="3600")) as script,
        calling(script, sleeper) as client,
    ):
        with pytest.raises(Problem) as caught:
            await client.get_run("R1")
        assert (len(script.asked), caught.value.retry_after_s) == (1, 3600.0)


@pytest.mark.parametrize(
    "step", [DROP, refused("retry_exhausted", 502), refused("peer_unavailable", 503), refused("deadline_exceeded", 504),
             Answer(200, b'{"id":', cut=True), Answer(429, b"busy")]
)  # fmt: skip
async def test_a_call_that_may_have_been_made_is_not_repeated(step: Any) -> None:
    """CLIENT-1: calls have no key, so a fault that leaves open whether one was made ends it."""
    sleeper = Sleeper()
    async with serving(step) as script, calling(script, sleeper) as client:
        with pytest.raises((Problem, Unreachable)):
            await client.invoke("chat-small", {"messages": []})
    assert (len(script.asked), sleeper.slept) == (1, [])


async def test_a_call_that_was_turned_away_is_repeated() -> None:
    """CLIENT-1: whoever had no room has made nothing, so the call is sent again, after Retry-After."""
    sleeper = Sleeper()
    result = {"id": "C1", "model": "chat-small", "kind": "chat", "output": {"choices": []}, "more": 1}
    steps = (refused("quota_full", 429, retry_after="2"), Answer(200, result))
    async with serving(*steps) as script, calling(script, sleeper) as client:
        assert (await client.invoke("chat-small", {"messages": []})).id == "C1"
    assert (len(script.asked), sleeper.slept) == (2, [2.5])


async def test_nobody_there() -> None:
    """CLIENT-1: a connection that cannot be made proves that nothing was made; it is tried again, within bounds."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and never listens
        sleeper = Sleeper()
        script = Script([], url=f"http://127.0.0.1:{taken.getsockname()[1]}")
        async with calling(script, sleeper) as client:
            with pytest.raises(Unreachable) as caught:
                await client.invoke("chat-small", {})
    assert (caught.value.sent, len(sleeper.slept)) == (False, 3)


async def test_a_stream_is_resumed_where_it_broke() -> None:
    """CLIENT-1: after a break the next connection names the last sequence; nothing is missing, nothing comes twice."""
    sleeper = Sleeper()
    steps = (
        Answer(200, b"retry: 500\n\n" + spelt(1) + spelt(2) + spelt(3)[:-9], cut=True),
        refused("overloaded", 503),
        Answer(200, spelt(2) + spelt(3, "a_kind_of_tomorrow") + b": this server is stopping\n\n"),
        Answer(200, spelt(4, "run_completed")),
    )
    async with serving(*steps) as script, calling(script, sleeper) as client:
        events = [event async for event in client.events("R1")]
    assert [event.sequence for event in events] == [1, 2, 3, 4]
    assert events[2].kind == "a_kind_of_tomorrow"
    assert [headers["last-event-id"] for _, _, headers, _ in script.asked] == ["0", "2", "2", "3"]
    assert {path for _, path, _, _ in script.asked} == {"/v1/runs/R1/stream"}


async def test_a_stream_of_a_run_that_has_ended() -> None:
    """CLIENT-1: 204 ends it; so does patience, where streams end again and again and nothing comes."""
    sleeper = Sleeper()
    async with serving(Answer(204)) as script, calling(script, sleeper) as client:
        assert [event async for event in client.events("R1", after=9)] == []
        assert len(script.asked) == 1
    async with serving(Answer(200, b"")) as script, calling(script, sleeper) as client:
        with pytest.raises(Unreachable):
            await anext(aiter(client.events("R1")))
        assert len(script.asked) == 4


async def test_history_that_is_gone() -> None:
    """CLIENT-1: 410 is no break: it is raised with what the server told."""
    gone = Answer(410, {"code": "history_pruned", "detail": "gone", "earliest": 7})
    async with serving(gone) as script, calling(script, Sleeper()) as client:
        with pytest.raises(Problem) as caught:
            await anext(aiter(client.events("R1", after=2)))
    assert (caught.value.code, caught.value.body["earliest"], len(script.asked)) == ("history_pruned", 7, 1)


async def test_both_statuses_are_looked_at() -> None:
    """CLIENT-1: 200 with a failed Run is no success; a wait that runs out is waited again, without being a failure."""
    error = {"code": "content_rejected", "message": "no", "retryable": False}
    waits = [refused("join_timeout", 504)] * 6
    async with (
        serving(*waits, Answer(200, {"id": "R1", "status": "failed", "error": error})) as script,
        calling(script, Sleeper()) as client,
    ):
        with pytest.raises(RunUnsuccessful) as caught:
            await client.result_of("R1")
        assert (caught.value.run.error and caught.value.run.error.code) == "content_rejected"
        assert len(script.asked) == 7
    unknown = Answer(200, {"id": "R1", "status": "a_state_of_tomorrow"})
    async with serving(unknown) as script, calling(script, Sleeper()) as client:
        with pytest.raises(RunUnsuccessful):
            await client.result_of("R1")


async def test_answers_of_others() -> None:
    """CLIENT-1: a page instead of JSON, and a redirect, are problems; a key is carried nowhere else."""
    async with serving(Answer(200, b"<html>hello</html>")) as script, calling(script, Sleeper()) as client:
        with pytest.raises(Problem) as caught:
            await client.get_run("R1")
        assert "none of ours" in str(caught.value)
    away = Answer(307, None, {"location": "http://127.0.0.1:9/"})
    async with serving(away) as script, calling(script, Sleeper()) as client:
        with pytest.raises(Problem) as redirected:
            await client.create_run("clip", {})
        assert (redirected.value.status, len(script.asked)) == (307, 1)


async def test_the_edge_itself(tmp_path: Path) -> None:
    """CLIENT-1: upload, create once, follow, fetch: against the real edge, which refuses by its own words."""
    async with edge_house(tmp_path) as edge:
        await edge.context.start()
        _, key = await edge.key("studio", "runs", "invoke")
        async with Client(edge.context.url, key) as client:
            kept = await client.upload(picture(), "image/png")
            assert await client.download(kept) == picture()
            first = await client.create_run("clip", {"prompt": "a lake"}, idempotency_key="k1")
            assert (await client.create_run("clip", {"prompt": "a lake"}, idempotency_key="k1")).id == first.id
            with pytest.raises(Problem) as conflict:
                await client.create_run("clip", {"prompt": "a hill"}, idempotency_key="k1")
            assert conflict.value.code == "idempotency_conflict"
            following = asyncio.create_task(collected(client, first.id))
            edge.runs.succeed(first.id, kept.sha256)
            await edge.runs.announce()
            assert [event.kind for event in await following][-1] == "run_completed"
            run = await client.result_of(first.id)
            assert run.result is not None
            assert run.result.artifacts[0].sha256 == kept.sha256
            assert [model.id for model in await client.models()] == ["clip"]
            assert (await client.invoke("chat-small", {"messages": []})).output["choices"]
            with pytest.raises(Problem) as wrong:
                await client.create_run("", {})
            assert wrong.value.errors[0][0] == "/model"
            with pytest.raises(Problem) as ended:
                await client.cancel_run(first.id)
            with pytest.raises(Problem) as ended_by_key:
                await client.cancel_by_key("k1")
            assert ended.value.code == ended_by_key.value.code == "run_terminal"
    assert len(edge.runs.created) == 1


async def test_the_edges_refusals_end_a_create(tmp_path: Path) -> None:
    """CLIENT-1: what runs refuses for good reaches the caller after one sending."""
    async with edge_house(tmp_path) as edge:
        await edge.context.start()
        _, key = await edge.key("studio", "runs")
        edge.runs.refusal = Fault.of("model_not_published")
        async with Client(edge.context.url, key) as client:
            with pytest.raises(Problem) as caught:
                await client.make("nobody", {"prompt": "x"})
    assert (caught.value.status, caught.value.code) == (404, "model_not_published")


async def collected(client: Client, run_id: str) -> list[Any]:
    """Every event of a Run."""
    return [event async for event in client.events(run_id)]


async def test_a_command_is_repeated_under_one_key() -> None:
    """CLIENT-1, RUN-8: what may have arrived is sent again as the same command, with the same bytes."""
    run, steered = {"id": "R1", "status": "paused"}, {"steering_event_id": "S1", "sequence": 2}
    commands: tuple[tuple[str, Any, Any], ...] = (
        ("pause", run, lambda client: client.pause_run("R1", "lunch")),
        ("resume", run, lambda client: client.resume_run("R1")),
        ("steer", steered, lambda client: client.steer_run("R1", "style", {"text": "in blue"})),
        ("redrive", run, lambda client: client.redrive_run("R1", "a/b", reason="Ann", input={"prompt": "y"})),
    )
    for verb, answer, command in commands:
        sleeper = Sleeper()
        steps = (DROP, refused("overloaded", 503), Answer(202, answer))
        async with serving(*steps) as script, calling(script, sleeper) as client:
            await command(client)
        assert {path for _, path, _, _ in script.asked} == {f"/v1/runs/R1/{verb}"}
        assert [headers["idempotency-key"] for _, _, headers, _ in script.asked] == ["made-up"] * 3
        assert len({body for _, _, _, body in script.asked}) == 1


async def test_desks_are_read_page_by_page() -> None:
    """CLIENT-1: all pages, whatever a later release adds; a decision is sent as it was made."""
    review = {"id": "Q1", "run_id": "R1", "node": "a", "status": "open", "novelty": 1, "kind": "a_kind_of_tomorrow"}
    first = {"reviews": [review], "next_page_token": "1"}
    last = {"reviews": [review | {"id": "Q2"}], "next_page_token": ""}
    decided = review | {"status": "decided", "decision": "raise_budget"}
    steps = (Answer(200, first), Answer(200, last), Answer(200, review), DROP, Answer(200, decided))
    async with serving(*steps) as script, calling(script, Sleeper()) as client:
        assert [item.id for item in await client.reviews(run_id="R1", statuses=("open", "decided"))] == ["Q1", "Q2"]
        assert (await client.review("Q1")).kind == "a_kind_of_tomorrow"
        verdict = await client.decide_review("Q1", "raise_budget", comment="ok", budget=Amount("CNY", "250.00"))
    assert verdict.decision == "raise_budget"
    assert "page_token=1" in script.asked[1][1]
    assert "status=open%2Cdecided" in script.asked[0][1] or "status=open,decided" in script.asked[0][1]
    bodies = {body for _, path, _, body in script.asked if path.endswith("/decide")}
    assert bodies == {b'{"decision":"raise_budget","comment":"ok","budget":{"currency":"CNY","amount":"250.00"}}'}
