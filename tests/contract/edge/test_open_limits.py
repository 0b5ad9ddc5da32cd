"""What a tenant may hold open at once, over the real routes: refused before any work, given back however it ends."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pointsman.runs.v1 import run_pb2
from services.edge.domain.open_limits import OpenLimits
from tests.contract.edge.house import ADMIN_KEY, EdgeHouse, edge_house
from tests.contract.edge.test_events import Listener, stands
from tests.contract.edge.test_problems import check
from tests.contract.edge.test_runs import ORDER
from tests.support.waiting import eventually

LIMITS = OpenLimits(streams=2, joins=1, calls=1, bodies=1, body_bytes=1000)
RUNNING = run_pb2.RunState.RUN_STATE_RUNNING
HELLO = {"model": "chat-small", "messages": [{"role": "user", "content": "Hello"}]}


@pytest.fixture
async def narrow(tmp_path: Path) -> AsyncIterator[EdgeHouse]:
    """The edge with little room for each tenant."""
    async with edge_house(tmp_path, open_limits=LIMITS) as house:
        yield house


async def refused(answer: Any, variable: str) -> None:
    """The answer is a 429 that says what to do and when to come again."""
    told = check(answer, 429, "quota_exceeded")
    assert answer.headers["retry-after"] == "2"
    assert f"raise {variable}" in told["detail"]


async def opened(edge: EdgeHouse, key: str, run_id: str = "r1") -> Listener:
    """A stream that has begun."""
    listener = Listener(edge, f"/v1/runs/{run_id}/stream", key)
    await listener.sees(lambda: listener.events)
    return listener


async def test_streams_are_given_back_however_they_end(narrow: EdgeHouse) -> None:
    """AUTH-2, SSE-4: one stream too many is 429 before runs is asked, and each end of a stream makes room again: the
    client leaves, the Run ends, the key is revoked, the answer is none, the request is refused."""
    key_id, key = await narrow.key("studio")
    for run_id in ("r1", "r2"):
        narrow.runs.add(run_id, "studio", state=RUNNING)
    first, second = await opened(narrow, key), await opened(narrow, key, "r2")
    async with narrow.client(key) as client:
        asked = len(narrow.runs.identities)
        await refused(await client.get("/v1/runs/r1/stream"), "POINTSMAN_TENANT_STREAMS")
        assert len(narrow.runs.identities) == asked, "no work was begun"
        assert (await client.get("/v1/runs/r1")).status_code == 200, "nothing else is held back"
        await first.leave()
        third = await opened(narrow, key)
        await refused(await client.get("/v1/runs/r1/stream"), "POINTSMAN_TENANT_STREAMS")
        narrow.runs.succeed("r2", "ab" * 32)
        await narrow.runs.announce()
        await second.task
        for _ in range(3):  # answers without a stream hold nothing afterwards
            assert (await client.get("/v1/runs/r2/stream", params={"after": 4})).status_code == 204
            check(await client.get("/v1/runs/none/stream"), 404, "not_found")
            check(await client.get("/v1/runs/r2/stream", params={"after": "x"}), 400, "malformed_request")
        fourth = await opened(narrow, key)
    async with narrow.admin as admin:
        await admin.delete(f"/v1/operator/keys/{key_id}")
    await stands(narrow, 2.5)
    await asyncio.gather(third.task, fourth.task)
    _, again = await narrow.key("studio")
    last = [await opened(narrow, again) for _ in range(2)]
    for listener in last:
        await listener.leave()


async def test_a_tenant_takes_nothing_from_others(narrow: EdgeHouse) -> None:
    """AUTH-2: a tenant at its limit leaves all others theirs."""
    _, key = await narrow.key("studio")
    narrow.runs.add("r1", "studio", state=RUNNING)
    narrow.runs.add("r2", "default", state=RUNNING)
    held = [await opened(narrow, key) for _ in range(2)]
    held += [await opened(narrow, ADMIN_KEY, "r2")]
    async with narrow.client(key) as client:
        await refused(await client.get("/v1/runs/r1/stream"), "POINTSMAN_TENANT_STREAMS")
    for listener in held:
        await listener.leave()


async def test_joins_at_once(narrow: EdgeHouse) -> None:
    """AUTH-2: one join too many is 429; who leaves, and who is answered, makes room."""
    _, key = await narrow.key("studio")
    narrow.runs.add("r1", "studio", state=RUNNING)
    narrow.runs.open.clear()
    asked = len(narrow.runs.identities)
    waiting = Listener(narrow, "/v1/runs/r1/join?timeout_s=600", key)
    await eventually(lambda: len(narrow.runs.identities) > asked)
    async with narrow.client(key) as client:
        await refused(await client.get("/v1/runs/r1/join"), "POINTSMAN_TENANT_JOINS")
        await waiting.leave()
        narrow.runs.open.set()
        narrow.runs.succeed("r1", "ab" * 32)
        for _ in range(2):
            assert (await client.get("/v1/runs/r1/join")).json()["status"] == "succeeded"


async def test_calls_at_once(narrow: EdgeHouse) -> None:
    """AUTH-2: one call too many is 429 in OpenAI's envelope and reaches nobody, streamed or not; the end of one, and
    a client that leaves, make room."""
    async with await narrow.user("studio", "invoke") as client:
        narrow.routing.gate.clear()
        first = asyncio.create_task(client.post("/v1/chat/completions", json=HELLO))
        await narrow.routing.begun.wait()
        for body in (HELLO, {**HELLO, "stream": True}):
            answer = await client.post("/v1/chat/completions", json=body)
            await refused(answer, "POINTSMAN_TENANT_CALLS")
            assert answer.json()["error"]["type"] == "rate_limit_error"
        assert len(narrow.routing.asked) == 1
        narrow.routing.gate.set()
        assert (await first).status_code == 200
        for body in (HELLO, {**HELLO, "stream": True}, HELLO):
            assert (await client.post("/v1/chat/completions", json=body)).status_code == 200


class Sender:
    """A client that sends a body piece by piece."""

    def __init__(self, edge: EdgeHouse, key: str, path: str, **headers: str) -> None:
        sent = {"authorization": f"Bearer {key}", "content-type": "application/json", **headers}
        scope = {
            "type": "http",
            "method": "POST",
            "path": path,
            "query_string": b"",
            "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in sent.items()],
        }
        self._pieces: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.status = 0
        self.body = b""
        self.task = asyncio.create_task(edge.context.app(scope, self._pieces.get, self._send))

    async def _send(self, message: Any) -> None:
        self.status = message.get("status", self.status)
        self.body += message.get("body", b"")

    async def send(self, body: bytes) -> None:
        """One piece of more to come; back once the server has taken it."""
        self._pieces.put_nowait({"type": "http.request", "body": body, "more_body": True})
        await eventually(self._pieces.empty)

    def leave(self) -> None:
        """Break the connection."""
        self._pieces.put_nowait({"type": "http.disconnect"})


async def test_bodies_under_way(narrow: EdgeHouse) -> None:
    """AUTH-2, EDG-3: while one body is on its way another of the tenant is 429, an operator's work and reads are not;
    a client that leaves in the middle makes room."""
    _, key = await narrow.key("studio")
    slow = Sender(narrow, key, "/v1/runs")
    await slow.send(b'{"model":')
    async with narrow.client(key) as client, narrow.admin as admin:
        await refused(await client.post("/v1/runs", json=ORDER), "POINTSMAN_TENANT_BODIES")
        await refused(await client.post("/v1/runs/r1/cancel"), "POINTSMAN_TENANT_BODIES")
        assert (await client.get("/v1/runs")).status_code == 200
        assert (await admin.post("/v1/operator/keys", json={"tenant": "studio", "scopes": ["runs"]})).status_code == 201
        slow.leave()
        await slow.task
        made = len(narrow.runs.created)
        assert (await client.post("/v1/runs", json=ORDER)).status_code == 202
    assert len(narrow.runs.created) == made + 1


@pytest.mark.parametrize("announced", [True, False])
async def test_bytes_of_bodies(tmp_path: Path, announced: bool) -> None:
    """AUTH-2: the bodies of a tenant in memory have one bound, as soon as a size is announced or has come."""
    async with edge_house(tmp_path, open_limits=OpenLimits(body_bytes=1000)) as edge:
        _, key = await edge.key("studio")
        length = {"content_length": "900"} if announced else {}
        slow = Sender(edge, key, "/v1/runs", **length)
        await slow.send(b" " if announced else b" " * 900)
        async with edge.client(key) as client:
            big = {**ORDER, "labels": {"pad": "x" * 200}}
            await refused(await client.post("/v1/runs", json=big), "POINTSMAN_TENANT_BODY_MIB")
            assert (await client.post("/v1/runs/r1/cancel")).status_code == 404, "what is small finds room"
            slow.leave()
            await slow.task
            assert (await client.post("/v1/runs", json=big)).status_code == 202


async def test_a_server_that_stops_gives_places_back(narrow: EdgeHouse) -> None:
    """SSE-2: the places of streams that a draining server closes are free."""
    _, key = await narrow.key("studio")
    narrow.runs.add("r1", "studio", state=RUNNING)
    held = [await opened(narrow, key) for _ in range(2)]
    await narrow.context.stop()
    await eventually(lambda: all(listener.ended for listener in held))
    async with narrow.client(key) as client:
        assert (await client.get("/v1/runs/r1/stream")).status_code != 429
