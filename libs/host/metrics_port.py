"""A port of a process's own for its metrics, which Prometheus asks for at `/metrics`: POINTSMAN_METRICS.

It answers from a thread, so that a process whose loop stands still is still heard of. Nobody is asked for a key:
whoever reaches the port sees names of the catalogue, figures, and nothing of users.
"""

from prometheus_client import start_http_server

from libs.host.exporting import aside
from libs.rpc.address import Address
from libs.telemetry.metrics import Metrics


class MetricsPort:
    """Open from the start on. `port` is the one that is served."""

    def __init__(self, address: Address, metrics: Metrics) -> None:
        """OSError where the address cannot be had."""
        self._server, self._thread = start_http_server(address.port, address.host, metrics.registry)
        self.port: int = self._server.server_port

    async def close(self) -> None:
        """Answer nobody any more."""
        await aside(self._server.shutdown)
        self._server.server_close()
        self._thread.join()
