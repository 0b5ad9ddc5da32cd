"""Inbound for callbacks: decode, call the use-case, encode."""

from typing import Any

from libs.kernel.world import World
from pointsman.runs.v1 import callback_service_pb2 as pb
from pointsman.runs.v1.callback_service_pb2_grpc import CallbackServiceServicer
from services.runs.app.find_run import find_run
from services.runs.app.send_callbacks import rotate_secret
from services.runs.ports import Callbacks, Random, Runs, WebhookSecrets
from services.runs.wire.callbacks import callback_to_proto


class CallbackServicer(CallbackServiceServicer):
    """`pointsman.runs.v1.CallbackService`."""

    def __init__(self, runs: Runs, callbacks: Callbacks, secrets: WebhookSecrets, world: World, random: Random) -> None:
        self._runs = runs
        self._callbacks = callbacks
        self._secrets = secrets
        self._world = world
        self._random = random

    async def ListCallbacks(self, request: pb.ListCallbacksRequest, context: Any) -> pb.ListCallbacksResponse:
        """The messages about one Run."""
        run = await find_run(self._runs, request.tenant, request.run_id)
        found = await self._callbacks.of_run(run.id)
        return pb.ListCallbacksResponse(callbacks=[callback_to_proto(callback) for callback in found])

    async def RotateSecret(self, request: pb.RotateSecretRequest, context: Any) -> pb.RotateSecretResponse:
        """A new secret, shown this once."""
        text = await rotate_secret(self._secrets, self._world, self._random, request.tenant)
        return pb.RotateSecretResponse(secret=text)
