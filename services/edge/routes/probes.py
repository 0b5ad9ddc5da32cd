"""/healthz, /readyz, /metrics and the pages of the error codes: no key."""

from collections.abc import Callable, Mapping

from starlette.responses import Response

from libs.faults.fault import Fault
from libs.faults.pages import index, page
from libs.faults.registry import CODES
from libs.telemetry.metrics import CONTENT_TYPE, Metrics
from services.edge.app.check_ready import Probe, check_ready
from services.edge.domain import shapes
from services.edge.routes.answers import answer
from services.edge.routes.operations import Asked, Operation

MARKDOWN = "text/plain; charset=utf-8"
PROMETHEUS = "text/plain"


class ProbeRoutes:
    """The handlers with what they need. `leaving` says whether this process is about to stop."""

    def __init__(self, probes: Mapping[str, Probe], metrics: Metrics, leaving: Callable[[], bool]) -> None:
        self._probes = probes
        self._leaving = leaving
        self._metrics = metrics

    async def alive(self, asked: Asked) -> Response:
        """This process answers."""
        return answer(shapes.Standing("ok"))

    async def ready(self, asked: Asked) -> Response:
        """Every peer answers, or 503 with the names of those that do not; 503 too where this process is stopping."""
        if self._leaving():
            raise Fault.of("peer_unavailable", "not ready: this process is stopping; send requests to another")
        await check_ready(self._probes)
        return answer(shapes.Standing("ready"))

    async def metrics(self, asked: Asked) -> Response:
        """Everything that this process counts."""
        return Response(self._metrics.page(), 200, {"content-type": CONTENT_TYPE, "cache-control": "no-store"})

    async def codes(self, asked: Asked) -> Response:
        """The list of all error codes, in Markdown."""
        return Response(index(), 200, {"content-type": MARKDOWN})

    async def code(self, asked: Asked) -> Response:
        """The page of one error code, in Markdown: where the `Link` of a problem leads."""
        entry = CODES.get(asked.path("code").removesuffix(".md"))
        if entry is None:
            raise Fault.of("not_found", "there is no such code; the codes that there are are listed at /errors")
        return Response(page(entry), 200, {"content-type": MARKDOWN})

    def operations(self) -> tuple[Operation, ...]:
        """What is served."""
        return (
            Operation("alive", "GET", "/healthz", self.alive, "This process answers.", answer=shapes.Standing),
            Operation(
                "ready", "GET", "/readyz", self.ready, "Requests can be served.", answer=shapes.Standing,
                codes=("peer_unavailable",),
            ),
            Operation(
                "metrics", "GET", "/metrics", self.metrics, "Everything that is counted.", media=PROMETHEUS
            ),
            Operation("listErrorCodes", "GET", "/errors", self.codes, "Every error code.", media="text/plain"),
            Operation(
                "getErrorCode", "GET", "/errors/{code}", self.code, "What one code means and what to do.",
                media="text/plain", codes=("not_found",),
            ),
        )  # fmt: skip
