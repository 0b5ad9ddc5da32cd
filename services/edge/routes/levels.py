"""/v1/operator/slo: how well productions go."""

from starlette.responses import Response

from services.edge.domain import level_shapes, queries
from services.edge.ports import Runs
from services.edge.routes.answers import answer
from services.edge.routes.operations import OPERATORS, Asked, Operation, Parameter

DAY_S = 86_400
LONGEST_S = 90 * DAY_S


class LevelRoutes:
    """The handler with what it needs."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs

    async def levels(self, asked: Asked) -> Response:
        """Figures of the newest Runs."""
        window_s = queries.number(asked.query("window_s"), "window_s", DAY_S, 1, LONGEST_S)
        return answer(await self._runs.levels(window_s))

    def operations(self) -> tuple[Operation, ...]:
        """What is served."""
        seconds = {"type": "number", "minimum": 1, "maximum": LONGEST_S, "default": DAY_S}
        window = Parameter("window_s", "Of Runs created within so many seconds up to now.", seconds)
        return (
            Operation(
                "getServiceLevels", "GET", "/v1/operator/slo", self.levels,
                "How well productions go, of all and by model, from the events of the newest Runs.", OPERATORS,
                answer=level_shapes.ServiceLevelReport, parameters=(window,), codes=("validation_failed",),
            ),
        )  # fmt: skip
