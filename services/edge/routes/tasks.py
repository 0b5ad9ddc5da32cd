"""/v1/tasks: a Task with its Attempts, and the reasons of every choice."""

from starlette.responses import Response

from services.edge.app.reveal import Reveal
from services.edge.domain import shapes
from services.edge.domain.keys import Scope
from services.edge.ports import Routing
from services.edge.routes.answers import answer
from services.edge.routes.operations import Asked, Operation

SEERS = frozenset({Scope.RUNS, Scope.OPERATE, Scope.ADMIN})


class TaskRoutes:
    """The handlers with what they need."""

    def __init__(self, routing: Routing, reveal: Reveal) -> None:
        self._routing = routing
        self._reveal = reveal

    async def get(self, asked: Asked) -> Response:
        """The Task."""
        task, digests = await self._routing.task(tenant_of(asked), asked.path("task_id"))
        if not asked.caller.operator:
            await self._reveal.grant(asked.tenant, digests)
        return answer(task)

    async def selections(self, asked: Asked) -> Response:
        """Every round."""
        return answer(shapes.SelectionList(await self._routing.selections(tenant_of(asked), asked.path("task_id"))))

    def operations(self) -> tuple[Operation, ...]:
        """What is served."""
        one = "/v1/tasks/{task_id}"
        return (
            Operation(
                "getTask", "GET", one, self.get, "One Task with its Attempts; operators see every tenant's.", SEERS,
                answer=shapes.Task, codes=("not_found",),
            ),
            Operation(
                "listSelections", "GET", f"{one}/selections", self.selections,
                "Every selection round of a Task, with the fate of every candidate.", SEERS,
                answer=shapes.SelectionList, codes=("not_found",),
            ),
        )  # fmt: skip


def tenant_of(asked: Asked) -> str:
    """The tenant whose Tasks may be seen: the caller's own, or any for operators, who must explain them."""
    return "" if asked.caller.operator else asked.tenant
