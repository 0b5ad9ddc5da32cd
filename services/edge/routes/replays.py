"""/v1/tasks/{id}/replay and /v1/operator/whatif: decisions made again, as they were and under an alternative."""

from datetime import timedelta
from typing import Any

from starlette.responses import Response

from libs.kernel.clock import Clock
from services.edge.domain import queries
from services.edge.domain import replay_shapes as shapes
from services.edge.ports import Alternative, Routing
from services.edge.routes.answers import answer
from services.edge.routes.bodies import read_object
from services.edge.routes.catalog import CATALOG_LIMIT_BYTES
from services.edge.routes.operations import JSON, OPERATORS, PAGING, Asked, Operation
from services.edge.routes.tasks import SEERS, tenant_of

LONGEST_S = 366 * 86_400.0
KINDS = ("policy", "prices", "catalog")
WHAT_IF_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "description": "Exactly one of `policy`, `prices` and `catalog`, the same with every page.",
    "required": ["since_s"],
    "properties": {
        "policy": {"type": "string", "description": "YAML: one policy for every decision, or a file with `policies`."},
        "prices": {"type": "string", "description": "YAML with `prices`; `currency` and `fx` where rates change."},
        "catalog": {"type": "string", "description": "A whole catalogue file, as YAML."},
        "since_s": {"type": "number", "minimum": 1, "maximum": LONGEST_S, "description": "Seconds of history."},
        "model": {"type": "string", "description": "Only decisions about this model."},
    },
}


class ReplayRoutes:
    """The handlers with what they need."""

    def __init__(self, routing: Routing, clock: Clock) -> None:
        self._routing = routing
        self._clock = clock

    async def replay(self, asked: Asked) -> Response:
        """Every round of a Task, decided again from its saved inputs."""
        return answer(await self._routing.replay(tenant_of(asked), asked.path("task_id")))

    async def what_if(self, asked: Asked) -> Response:
        """A page of history under an alternative; nothing is changed."""
        body = await read_object(asked.request, CATALOG_LIMIT_BYTES)
        given = {kind: body.text(kind, longest=CATALOG_LIMIT_BYTES) for kind in KINDS}
        named = [kind for kind in KINDS if given[kind].strip()]
        if len(named) != 1:
            body.refuse("", f"needs exactly one of {', '.join(KINDS)}")
        since_s = body.seconds("since_s", 1, LONGEST_S)
        if not body.has("since_s"):
            body.refuse("since_s", "is required")
        model = body.text("model")
        body.finish()
        size, token = queries.page_size(asked.query("page_size")), asked.query("page_token") or ""
        since = self._clock.now() - timedelta(seconds=since_s or 0)
        alternative = Alternative(named[0], given[named[0]])
        return answer(await self._routing.what_if(alternative, since, model, size, token))

    def operations(self) -> tuple[Operation, ...]:
        """What is served."""
        return (
            Operation(
                "replayTask", "GET", "/v1/tasks/{task_id}/replay", self.replay,
                "Every selection round decided again from its saved inputs, compared byte for byte.", SEERS,
                answer=shapes.Replay, codes=("not_found",),
            ),
            Operation(
                "whatIf", "POST", "/v1/operator/whatif", self.what_if,
                "What decisions would have been under another policy, price list or catalogue; changes nothing.",
                OPERATORS, answer=shapes.WhatIf, takes=WHAT_IF_SCHEMA, parameters=PAGING, types=frozenset({JSON}),
                codes=("malformed_request", "payload_too_large", "validation_failed", "catalog_invalid"),
            ),
        )  # fmt: skip
