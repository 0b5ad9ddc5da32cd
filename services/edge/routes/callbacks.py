"""What became of callbacks, and the secrets that sign them."""

from typing import Any

from starlette.responses import Response

from services.edge.domain import callback_shapes, keys
from services.edge.ports import Callbacks
from services.edge.routes.answers import answer
from services.edge.routes.bodies import SMALL_BODY_BYTES, read_object
from services.edge.routes.operations import ADMINS, JSON, USERS, Asked, Operation

SECRET_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["tenant"],
    "properties": {"tenant": {"type": "string", "maxLength": 64}},
}


class CallbackRoutes:
    """The handlers with what they need."""

    def __init__(self, callbacks: Callbacks) -> None:
        self._callbacks = callbacks

    async def list(self, asked: Asked) -> Response:
        """One for each time that the Run ended, newest first."""
        return answer(callback_shapes.CallbackList(await self._callbacks.of_run(asked.tenant, asked.path("run_id"))))

    async def rotate(self, asked: Asked) -> Response:
        """201 with the secret, which is shown this once."""
        body = await read_object(asked.request, SMALL_BODY_BYTES)
        tenant = body.text("tenant", required=True)
        body.finish()
        keys.check_tenant(tenant)
        secret = await self._callbacks.rotate_secret(tenant)
        return answer(callback_shapes.NewWebhookSecret(tenant, secret), 201)

    def operations(self) -> tuple[Operation, ...]:
        """What is served."""
        return (
            Operation(
                "listCallbacks", "GET", "/v1/runs/{run_id}/callbacks", self.list,
                "What became of the messages to the Run's callback_url.", USERS,
                answer=callback_shapes.CallbackList, codes=("not_found",),
            ),
            Operation(
                "rotateWebhookSecret", "POST", "/v1/operator/webhook-secrets", self.rotate,
                "Make the secret that signs a tenant's callbacks; it is shown this once.", ADMINS, 201,
                callback_shapes.NewWebhookSecret, takes=SECRET_SCHEMA, types=frozenset({JSON}),
                codes=("malformed_request", "validation_failed"),
            ),
        )  # fmt: skip
