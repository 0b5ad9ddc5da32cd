"""The port of a process's own for Prometheus."""

import asyncio
from pathlib import Path
from urllib.request import urlopen

import pytest

from libs.host.hosting import Host
from libs.host.metrics_port import MetricsPort
from libs.host.placement import placement
from libs.rpc.address import parse
from libs.telemetry import names
from libs.telemetry.metrics import CONTENT_TYPE, Metrics
from services.__main__ import BUILDERS


def page(port: int) -> tuple[str, str]:
    """The media type and the text that Prometheus is shown. Blocking."""
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        return answer.headers["content-type"], answer.read().decode()


async def test_any_process_shows_its_metrics():
    """OPS-5: a process without the edge is asked by Prometheus on a port of its own, and closes it."""
    metrics = Metrics()
    metrics.counter(names.PROVIDER_BYTES, adapter="ark", channel="main").inc(3)
    port = MetricsPort(parse("127.0.0.1:0"), metrics)
    try:
        kind, text = await asyncio.to_thread(page, port.port)
    finally:
        await port.close()
    assert kind.split(";")[0] == CONTENT_TYPE.split(";")[0]
    assert 'pointsman_provider_bytes_total{adapter="ark",channel="main"} 3.0' in text
    with pytest.raises(OSError):
        await asyncio.to_thread(page, port.port)


async def test_a_host_opens_it_where_it_is_told_to(tmp_path: Path):
    """OPS-5: by POINTSMAN_METRICS, in a process of any context; closed with the process."""
    env = {"POINTSMAN_DATABASE_URL": "memory:", "POINTSMAN_DATA": str(tmp_path), "POINTSMAN_ADMIN": "off"}
    env["POINTSMAN_METRICS"] = "127.0.0.1:0"
    host = Host(placement(env, ("health",), available=BUILDERS), env, BUILDERS)
    try:
        await host.start()
        assert "pointsman_" in (await asyncio.to_thread(page, host.metrics_port))[1]
    finally:
        await host.stop()
    with pytest.raises(OSError):
        await asyncio.to_thread(page, host.metrics_port)
