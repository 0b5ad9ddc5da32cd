"""What one hop costs: loopback, Unix socket and TCP, in one run on one machine (PRF-7).

    python -m tests.bench.bench_hop [--seconds 2] [--uvloop] [--json]

Sockets are served by a process of their own; the loopback by this one. Every call carries a deadline, identity and the
full set of interceptors, except in the rows that say bare. `CPU/call` is the processor time of both sides.
"""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import Any

from grpc import aio

from libs.rpc.address import parse
from libs.rpc.channel import channel_options, spreading
from libs.rpc.channels import Channels
from libs.rpc.loopback import LoopbackRegistry
from libs.rpc.server import RpcServer, server_options
from tests.support.generated_echo import pb2, pb2_grpc
from tests.support.hop import servicer

IN_FLIGHT = 64
REQUEST = pb2.EchoRequest(act="echo", text="a request of ordinary size, " * 8, number=7)
Ask = Callable[[], Awaitable[Any]]


@dataclass
class Row:
    """One line of the table; times in microseconds."""

    hop: str
    p50_us: float
    p99_us: float
    calls_per_s: float
    cpu_us: float


async def one_by_one(ask: Ask, seconds: float) -> list[float]:
    """Latencies in seconds, one call after the other."""
    latencies = []
    end = time.perf_counter() + seconds
    begun = time.perf_counter()
    while begun < end:
        await ask()
        now = time.perf_counter()
        latencies.append(now - begun)
        begun = now
    return latencies


async def together(ask: Ask, seconds: float) -> tuple[int, float]:
    """Calls made and seconds taken with `IN_FLIGHT` callers at once."""
    end = time.perf_counter() + seconds
    made = 0

    async def caller() -> None:
        nonlocal made
        while time.perf_counter() < end:
            await ask()
            made += 1

    begun = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(IN_FLIGHT)))
    return made, time.perf_counter() - begun


async def measure(name: str, ask: Ask, seconds: float, their_cpu: Callable[[], Awaitable[float]]) -> Row:
    """One row: warmed up, then one by one, then together."""
    await one_by_one(ask, min(0.3, seconds))
    latencies = sorted(await one_by_one(ask, seconds))
    ours, theirs = time.process_time(), await their_cpu()
    made, taken = await together(ask, seconds)
    cpu = time.process_time() - ours + await their_cpu() - theirs
    return Row(
        name,
        statistics.median(latencies) * 1e6,
        latencies[int(len(latencies) * 0.99)] * 1e6,
        made / taken,
        cpu / made * 1e6,
    )


async def no_cpu() -> float:
    """The server is this process."""
    return 0.0


async def codec_only() -> Any:
    """What no channel can go below: both messages written and read."""
    request = pb2.EchoRequest.FromString(REQUEST.SerializeToString())
    answer = pb2.EchoResponse(text=request.text, number=request.number, payload=request.payload)
    return pb2.EchoResponse.FromString(answer.SerializeToString())


async def loopback_row(seconds: float) -> Row:
    """The in-process channel."""
    registry = LoopbackRegistry()
    server = RpcServer(registry=registry)
    server.add(lambda s: pb2_grpc.add_EchoServiceServicer_to_server(servicer(), s))
    await server.start()
    async with Channels(registry=registry, caller="bench") as channels:
        stub = pb2_grpc.EchoServiceStub(channels.to("echo"))
        row = await measure("loopback", lambda: stub.Unary(REQUEST, timeout=10), seconds, no_cpu)
    await server.close(0.1)
    return row


@asynccontextmanager
async def served(listen: str, bare: bool) -> AsyncIterator[tuple[str, Callable[[], Awaitable[float]]]]:
    """A server in a process of its own: its address, and how to ask for its processor time."""
    arguments = ["-m", "tests.bench.bench_hop", "--serve", listen, *(["--bare"] if bare else [])]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    stdin, stdout = process.stdin, process.stdout
    address = (await stdout.readline()).decode().strip()

    async def cpu() -> float:
        stdin.write(b"cpu\n")
        return float(await stdout.readline())

    try:
        yield address, cpu
    finally:
        stdin.close()
        await process.wait()


async def socket_row(name: str, listen: str, seconds: float, bare: bool = False) -> Row:
    """A channel to another process."""
    async with served(listen, bare) as (text, their_cpu):
        address = parse(text)
        if bare:
            async with aio.insecure_channel(address.target, [*channel_options(), spreading(address)]) as channel:
                stub = pb2_grpc.EchoServiceStub(channel)
                return await measure(name, lambda: stub.Unary(REQUEST, timeout=10), seconds, their_cpu)
        async with Channels({"echo": address}, caller="bench") as channels:
            stub = pb2_grpc.EchoServiceStub(channels.to("echo"))
            return await measure(name, lambda: stub.Unary(REQUEST, timeout=10), seconds, their_cpu)


async def serve(listen: str, bare: bool) -> None:
    """The server's process: tell the address, then the processor time whenever asked, until stdin ends."""
    address = parse(listen)
    if bare:
        plain = aio.server(options=server_options(4 * 1024 * 1024, 4 * 1024 * 1024))
        pb2_grpc.add_EchoServiceServicer_to_server(servicer(), plain)
        print(f"127.0.0.1:{plain.add_insecure_port(address.listen)}", flush=True)
        await plain.start()
        await answer_cpu()
        await plain.stop(None)
        return
    server = RpcServer([address])
    server.add(lambda s: pb2_grpc.add_EchoServiceServicer_to_server(servicer(), s))
    await server.start()
    print(server.bound[address], flush=True)
    await answer_cpu()
    await server.close(0.1)


async def answer_cpu() -> None:
    """Write the processor time for every line read."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.readline():
        print(time.process_time(), flush=True)


async def table(seconds: float) -> list[Row]:
    """All rows, in one run."""
    with tempfile.TemporaryDirectory(prefix="hop-") as folder:
        return [
            await measure("encode and decode only", codec_only, seconds, no_cpu),
            await loopback_row(seconds),
            await socket_row("Unix socket", f"unix:{folder}/hop.sock", seconds),
            await socket_row("TCP", "127.0.0.1:0", seconds),
            await socket_row("TCP, bare grpcio", "127.0.0.1:0", seconds, bare=True),
        ]


def show(rows: list[Row]) -> None:
    """The table for people."""
    print(
        f"{'hop':24}{'p50 us':>10}{'p99 us':>10}{f'calls/s at {IN_FLIGHT}':>18}{'CPU/call us':>14}{'to loopback':>14}"
    )
    loopback = next(row for row in rows if row.hop == "loopback")
    for row in rows:
        ratio = row.p50_us / loopback.p50_us
        print(
            f"{row.hop:24}{row.p50_us:10.1f}{row.p99_us:10.1f}{row.calls_per_s:18,.0f}{row.cpu_us:14.1f}{ratio:13.1f}x"
        )


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement")
    parser.add_argument("--uvloop", action="store_true", help="use uvloop on the client's side")
    parser.add_argument("--json", action="store_true", help="for machines")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--bare", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        asyncio.run(serve(given.serve, given.bare))
        return
    if given.uvloop:
        import uvloop

        rows = uvloop.run(table(given.seconds))
    else:
        rows = asyncio.run(table(given.seconds))
    if given.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    else:
        show(rows)


if __name__ == "__main__":
    main()
