"""/v1/operator/runs: Runs of every tenant, for operators to read. What changes one takes a key of its own tenant."""

from starlette.responses import Response

from services.edge.domain import queries, run_shapes, shapes
from services.edge.ports.overseeing import Overseeing
from services.edge.routes.answers import answer
from services.edge.routes.operations import OPERATORS, PAGING, Asked, Operation, Parameter
from services.edge.routes.runs import AFTER, FILTERS


class OverseeingRoutes:
    """The handlers with what they need."""

    def __init__(self, runs: Overseeing) -> None:
        self._runs = runs

    async def list(self, asked: Asked) -> Response:
        """A page, newest first; without a tenant, of all."""
        statuses = queries.statuses(asked.every("status"))
        size = queries.page_size(asked.query("page_size"))
        tenant, label, token = (asked.query(name) or "" for name in ("tenant", "label", "page_token"))
        return answer(run_shapes.TenantRunPage(*await self._runs.page(tenant, statuses, label, size, token)))

    async def get(self, asked: Asked) -> Response:
        """One, whoever's it is."""
        return answer(await self._runs.get(asked.path("run_id")))

    async def events(self, asked: Asked) -> Response:
        """Its events after a cursor."""
        after = queries.cursor(asked.query("after"), "after")
        size = queries.page_size(asked.query("limit"), "limit")
        return answer(shapes.EventPage(await self._runs.events(asked.path("run_id"), after, size)))

    def operations(self) -> tuple[Operation, ...]:
        """What is served."""
        one = "/v1/operator/runs/{run_id}"
        return (
            Operation(
                "listTenantRuns", "GET", "/v1/operator/runs", self.list, "Runs of every tenant, newest first.",
                OPERATORS, answer=run_shapes.TenantRunPage,
                parameters=(Parameter("tenant", "Only this tenant's."), *FILTERS, *PAGING),
                codes=("malformed_request", "validation_failed"),
            ),
            Operation(
                "getTenantRun", "GET", one, self.get, "One Run with its nodes, whoever's it is.", OPERATORS,
                answer=run_shapes.TenantRun, codes=("not_found",),
            ),
            Operation(
                "listTenantRunEvents", "GET", f"{one}/events", self.events,
                "Events of a Run after a cursor, in order, whoever's it is.", OPERATORS, answer=shapes.EventPage,
                parameters=(AFTER, Parameter("limit", "At most this many.", PAGING[0].schema)),
                codes=("malformed_request", "not_found", "history_pruned", "validation_failed"),
            ),
        )  # fmt: skip
