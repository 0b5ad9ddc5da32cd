"""Events of a Run: pages, and the stream as a client sees it that stays until the end."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from pointsman.runs.v1 import run_pb2
from tests.contract.edge.house import ADMIN_KEY, EdgeHouse
from tests.contract.edge.test_problems import check
from tests.support.waiting import eventually


class Listener:
    """A client that reads a stream piece by piece, at the level of ASGI, and may leave."""

    def __init__(self, edge: EdgeHouse, path: str, key: str = ADMIN_KEY, **headers: str) -> None:
        path, _, query = path.partition("?")
        sent = {"authorization": f"Bearer {key}", **headers}
        self._scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in sent.items()],
        }
        self._gone = asyncio.Event()
        self._asked = False
        self.status = 0
        self.headers: dict[str, str] = {}
        self.text = ""
        self.ended = False
        self.task = asyncio.create_task(edge.context.app(self._scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            self.text += message["body"].decode()
            self.ended = not message.get("more_body", False)

    async def sees(self, condition: Callable[[], object]) -> None:
        """Wait until something is there."""
        await eventually(condition, 10)

    @property
    def events(self) -> list[dict[str, Any]]:
        """What came so far."""
        return [json.loads(line[6:]) for line in self.text.splitlines() if line.startswith("data: ")]

    @property
    def sequences(self) -> list[int]:
        """Their numbers."""
        return [event["sequence"] for event in self.events]

    async def leave(self) -> None:
        """Disconnect, and wait until the server has noticed."""
        self._gone.set()
        await self.task


async def stands(edge: EdgeHouse, seconds: float) -> None:
    """Let the stream's clock run, once somebody waits for it."""
    await eventually(lambda: edge.clock._sleepers, 10)
    edge.clock.advance(seconds)


async def test_pages_of_events(edge: EdgeHouse) -> None:
    """EVENT-1: sequences start at 1 and rise by 1; a page begins right after its cursor and is bounded."""
    edge.runs.add("r1")
    for number in range(4):
        edge.runs.tell("r1", "node_waiting", n=number)
    async with await edge.user() as client:
        every = (await client.get("/v1/runs/r1/events")).json()["events"]
        assert [event["sequence"] for event in every] == [1, 2, 3, 4, 5]
        assert every[1] == {
            "id": "e2",
            "run_id": "r1",
            "sequence": 2,
            "kind": "node_waiting",
            "data": {"n": 0},
            "created_at": "2026-01-01T12:00:02Z",
        }
        page = (await client.get("/v1/runs/r1/events", params={"after": 2, "limit": 2})).json()["events"]
        assert [event["sequence"] for event in page] == [3, 4]


@pytest.mark.parametrize("path", ["events", "stream"])
@pytest.mark.parametrize("after", ["-1", "x", "1.5", "99", "9" * 30])
async def test_cursors_that_cannot_be(edge: EdgeHouse, path: str, after: str) -> None:
    """EDG-2: a cursor that is no whole number, or lies ahead, is 400."""
    edge.runs.add("r1")
    async with await edge.user() as client:
        check(await client.get(f"/v1/runs/r1/{path}", params={"after": after}), 400, "malformed_request")
        if path == "stream":
            header = {"last-event-id": after}
            check(await client.get("/v1/runs/r1/stream", headers=header), 400, "malformed_request")


async def test_a_stream_of_a_finished_run(edge: EdgeHouse) -> None:
    """SSE-1: id, event, data and retry; SSE-2: it closes after the terminal event; 204 when nothing is newer."""
    edge.runs.add("r1")
    edge.runs.succeed("r1", "ab" * 32)
    async with await edge.user() as client:
        stream = await client.get("/v1/runs/r1/stream")
        assert (stream.status_code, stream.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        assert stream.headers["cache-control"] == "no-store"
        retry, *blocks = stream.text.strip().split("\n\n")
        assert retry == "retry: 2000"
        assert [block.split("\n")[0] for block in blocks] == ["id: 1", "id: 2", "id: 3", "id: 4"]
        assert blocks[3].split("\n")[1] == "event: run_completed"
        last = json.loads(blocks[3].split("\n")[2].removeprefix("data: "))
        assert set(last) == {"id", "run_id", "sequence", "kind", "data", "created_at"}
        rest = await client.get("/v1/runs/r1/stream", headers={"last-event-id": "2"})
        assert "id: 3" in rest.text
        assert "id: 2" not in rest.text
        assert (await client.get("/v1/runs/r1/stream", params={"after": 4})).status_code == 204
        both = await client.get("/v1/runs/r1/stream", params={"after": 0}, headers={"last-event-id": "4"})
        assert both.status_code == 204


async def test_events_come_as_they_are_committed(edge: EdgeHouse) -> None:
    """SSE-3: no gap and no loss over a broken connection: whoever comes back with its cursor sees every event once."""
    edge.runs.add("r1", "default", state=run_pb2.RunState.RUN_STATE_RUNNING)
    first = Listener(edge, "/v1/runs/r1/stream")
    await first.sees(lambda: first.sequences == [1])
    edge.runs.tell("r1", "node_started")
    await edge.runs.announce()
    await first.sees(lambda: first.sequences == [1, 2])
    await first.leave()
    edge.runs.tell("r1", "node_waiting")
    edge.runs.succeed("r1", "ab" * 32)
    second = Listener(edge, "/v1/runs/r1/stream?after=1", last_event_id="2")
    await second.task
    assert second.sequences == [3, 4, 5, 6]
    assert second.ended


async def test_what_is_pruned_is_gone(edge: EdgeHouse) -> None:
    """SSE-5: before the earliest event both doors answer 410 and name it, and no stream has begun; from there on they
    answer as ever."""
    edge.runs.add("r1", "default", state=run_pb2.RunState.RUN_STATE_RUNNING)
    edge.runs.succeed("r1", "ab" * 32)
    edge.runs.earliest["r1"] = 3
    async with edge.admin as client:
        for path in ("/v1/runs/r1/events", "/v1/runs/r1/stream"):
            for after in ({}, {"after": 1}):
                gone = await client.get(path, params=after)
                assert (gone.status_code, gone.json()["code"], gone.json()["earliest"]) == (410, "history_pruned", 3)
            assert (await client.get(path, params={"after": "x"})).status_code == 400
            assert (await client.get(path, params={"after": 5})).status_code == 400
        page = (await client.get("/v1/runs/r1/events", params={"after": 2})).json()
        assert [event["sequence"] for event in page["events"]] == [3, 4]
        assert "id: 3" in (await client.get("/v1/runs/r1/stream", params={"after": 2})).text
        assert (await client.get("/v1/runs/r1/stream", params={"after": 4})).status_code == 204


async def test_a_paused_run_closes_its_stream(edge: EdgeHouse) -> None:
    """SSE-2: at run_paused the server closes; the client may come back."""
    edge.runs.add("r1", "default", state=run_pb2.RunState.RUN_STATE_RUNNING)
    listener = Listener(edge, "/v1/runs/r1/stream")
    await listener.sees(lambda: listener.sequences == [1])
    edge.runs.runs["r1"].state = run_pb2.RunState.RUN_STATE_PAUSED
    edge.runs.tell("r1", "run_paused")
    await edge.runs.announce()
    await listener.task
    assert (listener.sequences, listener.ended) == ([1, 2], True)


async def test_silence_is_filled_with_heartbeats(edge: EdgeHouse) -> None:
    """SSE-1: a comment every 15 s of silence, so that nobody takes the line for dead."""
    edge.runs.add("r1", "default", state=run_pb2.RunState.RUN_STATE_RUNNING)
    listener = Listener(edge, "/v1/runs/r1/stream")
    await listener.sees(lambda: listener.sequences == [1])
    for _ in range(5):
        await stands(edge, 2.5)
    assert ": heartbeat" not in listener.text
    await stands(edge, 2.5)
    await listener.sees(lambda: listener.text.count(": heartbeat\n\n") == 1)
    for _ in range(6):
        await stands(edge, 2.5)
    await listener.sees(lambda: listener.text.count(": heartbeat\n\n") == 2)
    await listener.leave()


async def test_who_leaves_ends_its_stream_alone(edge: EdgeHouse) -> None:
    """SSE-1: a client that leaves frees what its stream held; the run goes on untouched."""
    edge.runs.add("r1", "default", state=run_pb2.RunState.RUN_STATE_RUNNING)
    listener = Listener(edge, "/v1/runs/r1/stream")
    await listener.sees(lambda: listener.sequences == [1])
    await listener.sees(lambda: edge.runs.streams == 1)
    assert b"pointsman_http_streams 1.0" in edge.metrics.page()
    await listener.leave()
    await listener.sees(lambda: edge.runs.streams == 0)
    assert b"pointsman_http_streams 0.0" in edge.metrics.page()
    assert edge.runs.runs["r1"].state == run_pb2.RunState.RUN_STATE_RUNNING


async def test_a_revoked_key_loses_its_stream(edge: EdgeHouse) -> None:
    """AUTH-1: within five seconds of its revocation a key's open stream ends."""
    key_id, text = await edge.key()
    edge.runs.add("r1", state=run_pb2.RunState.RUN_STATE_RUNNING)
    listener = Listener(edge, "/v1/runs/r1/stream", text)
    await listener.sees(lambda: listener.sequences == [1])
    async with edge.admin as admin:
        await admin.delete(f"/v1/operator/keys/{key_id}")
    await stands(edge, 2.5)
    await listener.task
    assert "revoked" in listener.text
    assert listener.ended


async def test_a_server_that_stops_says_so(edge: EdgeHouse) -> None:
    """SSE-2: a draining server closes its streams with a comment; the client comes back with its cursor."""
    edge.runs.add("r1", "default", state=run_pb2.RunState.RUN_STATE_RUNNING)
    listener = Listener(edge, "/v1/runs/r1/stream")
    await listener.sees(lambda: listener.sequences == [1])
    await edge.context.stop()
    await listener.task
    assert ": this server is stopping" in listener.text
    assert listener.ended
