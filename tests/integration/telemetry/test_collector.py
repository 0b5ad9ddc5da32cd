"""A real process before a collector of the tests' own: what arrives, what its log says, and how it ends."""

import json
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from cli.demo.stage import free_ports
from tests.support import processes
from tests.support.collector import Collector, collecting
from tests.support.waiting import eventually

TRACE, CALLER = "d" * 32, "e" * 16
PROTOCOLS = ("http/protobuf", "grpc")


class Process:
    """The edge and health in one process, without a database."""

    def __init__(self, folder: Path, more: dict[str, str]) -> None:
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        self.log = folder / "process.log"
        self.ready = folder / "ready"
        env = {
            "POINTSMAN_DATABASE_URL": "memory:",
            "POINTSMAN_DATA": str(folder / "data"),
            "POINTSMAN_ADMIN": "off",
            "POINTSMAN_ADMIN_KEY": "pm_collected",
            "POINTSMAN_HTTP": f"127.0.0.1:{port}",
            **more,
        }
        outer = processes.environment(uuid.uuid4().hex, env)
        arguments = [sys.executable, "-m", "services", "health", "edge", "--ready-file", str(self.ready)]
        self.child: subprocess.Popen[bytes] = processes.spawn(arguments, outer, self.log)

    async def ask(self) -> int:
        """The status of a request that stands in a trace of the caller's."""
        headers = {"traceparent": f"00-{TRACE}-{CALLER}-01"}
        async with aiohttp.ClientSession() as session, session.get(f"{self.url}/v1/runs", headers=headers) as answer:
            return answer.status

    async def stopped(self) -> int:
        """The exit code after a SIGTERM."""
        self.child.terminate()
        await eventually(lambda: self.child.poll() is not None)
        return int(self.child.returncode)

    def lines(self) -> list[dict[str, Any]]:
        """What it logged, every line of which is JSON."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.strip()]


@asynccontextmanager
async def running(folder: Path, **more: str) -> AsyncIterator[Process]:
    """A process that is ready, and gone at the end."""
    process = Process(folder, more)
    try:
        await eventually(lambda: process.ready.exists() or process.child.poll() is not None)
        assert process.child.poll() is None, process.log.read_text()
        yield process
    finally:
        process.child.kill()
        process.child.wait()


def told_to(collector: Collector, protocol: str) -> dict[str, str]:
    """The variables that send there, and soon."""
    return {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint,
        "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
        "OTEL_METRIC_EXPORT_INTERVAL": "200",
        "OTEL_BSP_SCHEDULE_DELAY": "100",
    }


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_traces_and_metrics_arrive_at_a_collector(tmp_path: Path, protocol: str) -> None:
    """OPS-5: over either protocol, in the caller's trace, under the listed names; the log names the same trace."""
    async with collecting(protocol) as collector, running(tmp_path, **told_to(collector, protocol)) as process:
        assert await process.ask() == 401
        await eventually(lambda: collector.spans and "pointsman_http_seconds" in collector.metric_names)
        (span,) = collector.spans
        assert (span.name, span.trace_id.hex(), span.parent_span_id.hex()) == ("GET /v1/runs", TRACE, CALLER)
        assert collector.senders() == {"pointsman"}
        (line,) = [line for line in process.lines() if line["message"] == "http_request"]
        assert (line["trace_id"], line["span_id"]) == (TRACE, span.span_id.hex())
        (request_id,) = [item.value.string_value for item in span.attributes if item.key == "pointsman.request_id"]
        assert line["request_id"] == request_id
        assert await process.stopped() == 0


async def test_what_is_left_is_sent_at_the_end(tmp_path: Path) -> None:
    """OPS-5: a process that stops sends what it has not sent yet, under the name that it was given."""
    slow = {"OTEL_METRIC_EXPORT_INTERVAL": "600000", "OTEL_BSP_SCHEDULE_DELAY": "600000", "OTEL_SERVICE_NAME": "north"}
    async with collecting(PROTOCOLS[0]) as collector:
        async with running(tmp_path, **told_to(collector, PROTOCOLS[0]) | slow) as process:
            await process.ask()
            assert not collector.spans
            assert await process.stopped() == 0
        assert [span.name for span in collector.spans] == ["GET /v1/runs"]
        assert "pointsman_http_seconds" in collector.metric_names
        assert collector.senders() == {"north"}


async def test_a_collector_that_is_away_keeps_nobody_from_anything(tmp_path: Path) -> None:
    """OPS-5: requests are answered and the process ends in time, with exit code 0."""
    (port,) = free_ports(1)
    away = Collector(f"http://127.0.0.1:{port}")
    async with running(tmp_path, **told_to(away, PROTOCOLS[0]), OTEL_EXPORTER_OTLP_TIMEOUT="1") as process:
        assert await process.ask() == 401
        assert await process.stopped() == 0
