"""/v1/operator: the past of a Channel or Supply, and why a Task went where it went."""

from starlette.responses import Response

from services.edge.domain import past_shapes as shapes
from services.edge.domain import queries
from services.edge.ports import Health, Routing
from services.edge.routes.answers import answer
from services.edge.routes.operations import OPERATORS, Asked, Handler, Operation, Parameter

TIME = {"type": "string", "format": "date-time"}


class PastRoutes:
    """The handlers with what they need."""

    def __init__(self, routing: Routing, health: Health) -> None:
        self._routing = routing
        self._health = health

    def _past(self, sort: str) -> Handler:
        async def past(asked: Asked) -> Response:
            at = queries.moment(asked.query("at"), "at")
            return answer(await self._health.past(sort, asked.path("id"), at))

        return past

    async def explanation(self, asked: Asked) -> Response:
        """The steps, the story, and the health events behind refused Supplies."""
        return answer(await self._routing.explanation(asked.path("task_id")))

    def operations(self) -> tuple[Operation, ...]:
        """What is served."""
        at = "/v1/operator"
        when = Parameter("at", "The state that held at this time; absent: now.", TIME)
        return (
            *(
                Operation(
                    f"explain{sort.capitalize()}Health", "GET", f"{at}/{plural}/{{id:path}}/health", self._past(sort),
                    f"The health of a {sort} at a time, from its history: state, reason, and the event behind it.",
                    OPERATORS, answer=shapes.PastHealth, parameters=(when,), codes=("not_found", "validation_failed"),
                )
                for sort, plural in (("supply", "supplies"), ("channel", "channels"))
            ),
            Operation(
                "explainTask", "GET", f"{at}/tasks/{{task_id}}/explanation", self.explanation,
                "Why a Task went where it went, with the health events behind refused supplies.", OPERATORS,
                answer=shapes.Explanation, codes=("not_found",),
            ),
        )  # fmt: skip
