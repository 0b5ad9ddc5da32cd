"""The edge on a real port: what ASGI cannot show."""

import asyncio
import contextlib
import io
import json
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from pointsman.runs.v1 import run_pb2
from tests.contract.edge.house import ADMIN_KEY, EdgeHouse, edge_house
from tests.support.waiting import eventually

HEADERS = {"authorization": f"Bearer {ADMIN_KEY}"}


@pytest.fixture
async def edge(tmp_path: Path) -> AsyncIterator[EdgeHouse]:
    """The edge with its port open."""
    async with edge_house(tmp_path) as house:
        await house.context.start()
        yield house


async def raw(edge: EdgeHouse, sent: bytes) -> bytes:
    """Everything that comes back for these bytes."""
    reader, writer = await asyncio.open_connection(*edge.context.listener.address)
    try:
        writer.write(sent)
        await writer.drain()
        async with asyncio.timeout(10):
            return await reader.read()
    finally:
        writer.close()


async def test_port_zero_is_a_free_port(edge: EdgeHouse) -> None:
    """OPS-1: port 0 takes a free one and tells which; it answers."""
    host, port = edge.context.listener.address
    assert (host, port > 0, edge.context.url) == ("127.0.0.1", True, f"http://127.0.0.1:{port}")
    async with aiohttp.ClientSession() as session, session.get(f"{edge.context.url}/healthz") as answer:
        assert (answer.status, await answer.json()) == (200, {"status": "ok"})
        assert "server" not in answer.headers


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: a\r\nbad header\r\n\r\n",
        b"POST /v1/runs HTTP/1.1\r\nhost: a\r\ncontent-length: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
    ],
)
async def test_bytes_that_are_no_http(edge: EdgeHouse, sent: bytes) -> None:
    """EDG-3: bytes that are no HTTP get a problem and a closed connection."""
    head, _, body = (await raw(edge, sent)).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"application/problem+json" in head
    problem = json.loads(body)
    assert problem["code"] == "malformed_request"
    assert problem["request_id"].encode() in head


async def test_a_head_without_end(edge: EdgeHouse) -> None:
    """EDG-3: headers are bounded; a large body right behind its head is none of them."""
    answer = await raw(edge, b"GET /healthz HTTP/1.1\r\nx: " + b"a" * 65_600)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"the head of the request" in answer
    head = b"POST /v1/artifacts HTTP/1.1\r\nhost: a\r\nauthorization: Bearer " + ADMIN_KEY.encode()
    head += b"\r\nconnection: close\r\ncontent-length: 200000\r\n\r\n"
    assert (await raw(edge, head + b"a" * 200_000)).startswith(b"HTTP/1.1 201 ")


async def test_a_large_head_in_one_piece(edge: EdgeHouse) -> None:
    """EDG-3: the bound of a head holds also where the whole of it comes at once, and in pieces whose last ends it."""
    for sent in (
        b"GET /healthz HTTP/1.1\r\nhost: a\r\nx: " + b"a" * 70_000 + b"\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nhost: a\r\n" + b"x: aaaaaaaaaaaaaaaa\r\n" * 4000 + b"\r\n",
    ):
        answer = await raw(edge, sent)
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert b"the head of the request has more than 65536 bytes" in answer


CHUNKED = (
    b"POST /v1/runs HTTP/1.1\r\nhost: a\r\nconnection: close\r\ntransfer-encoding: chunked\r\n"
    b"content-type: application/json\r\nauthorization: Bearer " + ADMIN_KEY.encode() + b"\r\n\r\n"
)


async def test_a_body_that_says_much_and_holds_nothing(edge: EdgeHouse) -> None:
    """EDG-3: what stands between the content of a chunked body is bounded as a head is."""
    begun = CHUNKED + b"2;"
    answer = await raw(edge, begun + b"a" * (65_537 - len(begun)))
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"the body of the request has between its content more than 65536 bytes" in answer


@pytest.mark.parametrize("begun", [b"2;", b"2\r\n{}\r\n0\r\nx: ", b"2\r\n{}\r\n0\r\n"])
async def test_a_body_without_end(edge: EdgeHouse, begun: bytes) -> None:
    """EDG-3: framing and trailers that never end are cut, however they go on."""
    reader, writer = await asyncio.open_connection(*edge.context.listener.address)
    writer.write(CHUNKED + begun)
    piece, sent = (b"y: " + b"a" * 1000 + b"\r\n" if begun.endswith(b"\n") else b"a" * 1000), 0
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(10):
            while not reader.at_eof():
                writer.write(piece)
                await writer.drain()
                sent += len(piece)
                await asyncio.sleep(0)
    assert sent < 8_000_000, "what is on its way in the buffers of the socket"
    writer.close()


async def test_trailers_are_no_headers(edge: EdgeHouse) -> None:
    """EDG-3, AUTH-1: what comes behind a body is read as no header, a key least of all."""
    order = b'{"model":"m","input":{"prompt":"a"}}'
    body = b"%x\r\n%s\r\n0\r\n" % (len(order), order)
    trailer = b"authorization: Bearer " + ADMIN_KEY.encode() + b"\r\n\r\n"
    stranger = b"\r\n".join(line for line in CHUNKED.split(b"\r\n") if not line.startswith(b"authorization"))
    assert (await raw(edge, stranger + body + trailer)).startswith(b"HTTP/1.1 401 ")
    assert (await raw(edge, CHUNKED + body + b"idempotency-key: a b\r\n\r\n")).startswith(b"HTTP/1.1 202 ")


async def test_nonsense_behind_a_stream(edge: EdgeHouse) -> None:
    """EDG-3: a client that sends what is no HTTP while it is answered is cut; nothing is written into the answer."""
    edge.runs.add("r1", "default", state=run_pb2.RunState.RUN_STATE_RUNNING)
    reader, writer = await asyncio.open_connection(*edge.context.listener.address)
    writer.write(
        b"GET /v1/runs/r1/stream HTTP/1.1\r\nhost: a\r\nauthorization: Bearer " + ADMIN_KEY.encode() + b"\r\n\r\n"
    )
    async with asyncio.timeout(10):
        begun = await reader.readuntil(b"run_created")
        writer.write(b"nonsense\r\n\r\n")
        rest = await reader.read()
    writer.close()
    assert begun.startswith(b"HTTP/1.1 200 ")
    assert b"HTTP/1.1" not in rest
    await eventually(lambda: edge.runs.streams == 0)


async def test_a_request_names_its_host(edge: EdgeHouse) -> None:
    """EDG-3: HTTP/1.1 asks for one Host; HTTP/1.0 for none."""
    assert (await raw(edge, b"GET /healthz HTTP/1.0\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
    for hosts in (b"", b"host: a\r\nhost: b\r\n"):
        answer = await raw(edge, b"GET /healthz HTTP/1.1\r\nconnection: close\r\n" + hosts + b"\r\n")
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert b"application/problem+json" in answer


async def test_a_client_that_falls_silent(tmp_path: Path) -> None:
    """EDG-3: whoever connects and says nothing, leaves a head half said or a body half sent holds no connection."""
    head = b"POST /v1/artifacts HTTP/1.1\r\nhost: a\r\nauthorization: Bearer " + ADMIN_KEY.encode()
    body = head + b"\r\ncontent-length: 9\r\n\r\n"
    async with edge_house(tmp_path, patience_s=1.0) as house:
        await house.context.start()
        silent = (b"", b"GET /healthz HT", b"GET /healthz HTTP/1.1\r\nhost: a\r\n", body, body + b"four")
        assert await asyncio.gather(*(raw(house, sent) for sent in silent)) == [b""] * len(silent)
        reader, writer = await asyncio.open_connection(*house.context.listener.address)
        writer.write(body)
        for byte in b"nine byte":  # slowly, and yet never silent for long
            await asyncio.sleep(0.2)
            writer.write(bytes([byte]))
        assert (await reader.readline()).startswith(b"HTTP/1.1 201 ")
        writer.close()


async def test_a_body_that_is_announced_too_large(edge: EdgeHouse) -> None:
    """EDG-3: 413 comes before the body is sent, also to a client that waits to be told to go on."""
    head = b"POST /v1/runs HTTP/1.1\r\nhost: a\r\nauthorization: Bearer " + ADMIN_KEY.encode()
    head += b"\r\ncontent-type: application/json\r\ncontent-length: 999999999\r\nexpect: 100-continue\r\n"
    answer = await raw(edge, head + b"connection: close\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"payload_too_large" in answer


async def test_a_client_that_breaks_its_body_off(edge: EdgeHouse) -> None:
    """EDG-3: a body that ends too early makes no run and no stack trace; the next request is served."""
    head = b"POST /v1/runs HTTP/1.1\r\nhost: a\r\nauthorization: Bearer " + ADMIN_KEY.encode()
    _, writer = await asyncio.open_connection(*edge.context.listener.address)
    writer.write(head + b"\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{")
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    async with aiohttp.ClientSession() as session, session.get(f"{edge.context.url}/healthz") as answer:
        assert answer.status == 200
    assert edge.runs.created == []


async def test_a_stream_over_a_socket(edge: EdgeHouse) -> None:
    """SSE-1: events arrive while the run goes on; SSE-4: a client that leaves frees its stream and cancels nothing."""
    edge.runs.add("r1", "default", state=run_pb2.RunState.RUN_STATE_RUNNING)
    url = f"{edge.context.url}/v1/runs/r1/stream"
    async with aiohttp.ClientSession(headers=HEADERS) as session:
        async with session.get(url) as answer:
            seen = b""
            while b"id: 1\n" not in seen:
                seen += await answer.content.readany()
            edge.runs.tell("r1", "node_started")
            await edge.runs.announce()
            while b"id: 2\n" not in seen:
                seen += await answer.content.readany()
            answer.close()
    await eventually(lambda: edge.runs.streams == 0)
    assert edge.runs.runs["r1"].state == run_pb2.RunState.RUN_STATE_RUNNING


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("size", [10, 300_000])
async def test_a_client_that_leaves_a_call(edge: EdgeHouse, stream: bool, size: int) -> None:
    """SYN-8: the end of the connection gives the call up, also after a body so long that reading paused."""
    edge.routing.gate.clear()
    asked = {"model": "m", "messages": [{"role": "user", "content": "a" * size}], "stream": stream}
    body = json.dumps(asked).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {ADMIN_KEY}\r\n"
    head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    _, writer = await asyncio.open_connection(*edge.context.listener.address)
    writer.write(head.encode() + body)
    await edge.routing.begun.wait()
    writer.close()
    await eventually(lambda: edge.routing.given_up == [edge.routing.asked[0].call_id])


async def test_stopping_drains(edge: EdgeHouse) -> None:
    """OPS-2: a stop tells open streams, ends in bounded time, and closes the port."""
    edge.runs.add("r1", "default", state=run_pb2.RunState.RUN_STATE_RUNNING)
    async with aiohttp.ClientSession(headers=HEADERS) as session:
        async with session.get(f"{edge.context.url}/v1/runs/r1/stream") as answer:
            first = await answer.content.readany()
            stopping = asyncio.create_task(edge.context.stop())
            rest = await answer.content.read()
            await stopping
    assert b"retry: 2000" in first
    assert b"this server is stopping" in rest
    with pytest.raises(OSError):
        await asyncio.open_connection(*edge.context.listener.address)


async def test_a_taken_port_is_named(edge: EdgeHouse, tmp_path: Path) -> None:
    """OPS-1: a port that somebody holds is told by its address; stopping after that is harmless."""
    host, port = edge.context.listener.address
    async with edge_house(tmp_path / "second") as second:
        second.context.listener._port = port
        with pytest.raises(OSError, match=f"cannot listen on {host}:{port}"):
            await second.context.start()


async def test_a_large_artifact_is_streamed(edge: EdgeHouse) -> None:
    """RUN-7: bytes come back as they were sent, whole and in part, over many chunks."""
    content = bytes(range(256)) * 8192
    async with aiohttp.ClientSession(headers=HEADERS) as session:
        async with session.post(f"{edge.context.url}/v1/artifacts", data=io.BytesIO(content)) as made:
            assert made.status == 201
            url = edge.context.url + (await made.json())["url"]
        async with session.get(url) as whole:
            assert await whole.read() == content
        async with session.get(url, headers={"range": "bytes=1000000-1999999"}) as part:
            assert (part.status, await part.read()) == (206, content[1_000_000:2_000_000])
