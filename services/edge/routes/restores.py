"""/v1/operator/restores: an operator's word that the database was put back to a backup."""

from typing import Any

from starlette.responses import Response

from services.edge.domain import restore_shapes
from services.edge.domain.queries import instant
from services.edge.ports.restoring import Restoring
from services.edge.routes.answers import answer
from services.edge.routes.bodies import read_object
from services.edge.routes.operations import JSON, OPERATORS, Asked, Operation
from services.edge.routes.runs import SMALL_BODY_BYTES

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "backup_at": {
            "type": "string",
            "format": "date-time",
            "description": "The moment up to which the backup holds everything. Required unless `over`.",
        },
        "over": {
            "type": "boolean",
            "description": "Nothing needs to be looked up any more: a person has compared both books.",
        },
    },
}


class RestoreRoutes:
    """The handler with what it needs."""

    def __init__(self, restoring: Restoring) -> None:
        self._restoring = restoring

    async def declare(self, asked: Asked) -> Response:
        """What is known by now, and how many tasks are looked up before they are sent."""
        body = await read_object(asked.request, SMALL_BODY_BYTES)
        told, over = body.text("backup_at"), bool(body.flag("over"))
        backup_at = instant(told) if told else None
        if told and backup_at is None:
            body.refuse("backup_at", "must be a time such as 2026-01-31T09:30:00Z")
        elif backup_at is None and not over:
            body.refuse("backup_at", "is required: the moment up to which the backup holds everything")
        body.finish()
        return answer(await self._restoring.restored(backup_at, over))

    def operations(self) -> tuple[Operation, ...]:
        """What is served."""
        return (
            Operation(
                "declareRestored", "POST", "/v1/operator/restores", self.declare,
                "Say that the database was put back to a backup: what may have been submitted since is looked up at "
                "its provider before it is sent again.", OPERATORS, answer=restore_shapes.Restores, takes=SCHEMA,
                types=frozenset({JSON}), codes=("malformed_request", "not_found", "validation_failed"),
            ),
        )  # fmt: skip
