"""/v1/operator/keys: make, list, rotate, revoke."""

from datetime import datetime
from typing import Any

from starlette.responses import Response

from libs.kernel.world import World
from services.edge.app.authenticate import Authenticator
from services.edge.app.create_key import create_key
from services.edge.app.list_keys import list_keys
from services.edge.app.revoke_key import revoke_key
from services.edge.app.rotate_key import rotate_key
from services.edge.domain import key_shapes, queries
from services.edge.domain.json_values import Reader
from services.edge.domain.keys import LONGEST_GRACE_S, Key, Scope
from services.edge.ports import Keys, Random
from services.edge.routes.answers import answer, nothing
from services.edge.routes.bodies import SMALL_BODY_BYTES, read_object
from services.edge.routes.operations import ADMINS, JSON, PAGING, Asked, Operation, Parameter

KEY_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["tenant", "scopes"],
    "properties": {
        "tenant": {"type": "string", "maxLength": 64},
        "scopes": {"type": "array", "minItems": 1, "items": {"enum": [scope.value for scope in Scope]}},
        "expires_at": {"type": ["string", "null"], "format": "date-time"},
    },
}
ROTATE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "grace_s": {
            "type": "number",
            "minimum": 0,
            "maximum": LONGEST_GRACE_S,
            "default": 0,
            "description": "For how long the old text still holds.",
        },
    },
}


class KeyRoutes:
    """The handlers with what they need."""

    def __init__(self, store: Keys, authenticator: Authenticator, world: World, random: Random) -> None:
        self._store = store
        self._authenticator = authenticator
        self._world = world
        self._random = random

    async def create(self, asked: Asked) -> Response:
        """201 with the key, which is shown this once."""
        body = await read_object(asked.request, SMALL_BODY_BYTES)
        tenant, expires_at = body.text("tenant", required=True), _time(body)
        scopes = body.texts("scopes", required=True)
        body.finish()
        key, text = await create_key(self._store, self._world, self._random, tenant, scopes, expires_at)
        return answer(key_shapes.NewKey(key.id, text), 201, {"location": f"/v1/operator/keys/{key.id}"})

    async def list(self, asked: Asked) -> Response:
        """Newest first, never their secrets."""
        size, token = queries.page_size(asked.query("page_size")), asked.query("page_token") or ""
        keys, following = await list_keys(self._store, asked.query("tenant") or "", token, size)
        return answer(key_shapes.KeyList([_record(key) for key in keys], following))

    async def rotate(self, asked: Asked) -> Response:
        """200 with the new text, which is shown this once; the old one ends now, or after the grace asked for."""
        body = await read_object(asked.request, SMALL_BODY_BYTES, optional=True)
        grace_s = body.seconds("grace_s", 0, LONGEST_GRACE_S) or 0.0
        body.finish()
        key, text = await rotate_key(
            self._store, self._authenticator, self._world, self._random, asked.path("key_id"), grace_s
        )
        return answer(key_shapes.NewKey(key.id, text))

    async def revoke(self, asked: Asked) -> Response:
        """204; the key is refused everywhere within five seconds."""
        await revoke_key(self._store, self._authenticator, self._world, asked.path("key_id"))
        return nothing()

    def operations(self) -> tuple[Operation, ...]:
        """What is served."""
        at = "/v1/operator/keys"
        return (
            Operation(
                "createKey", "POST", at, self.create, "Make a key; it is shown this once.", ADMINS, 201,
                key_shapes.NewKey, takes=KEY_SCHEMA, types=frozenset({JSON}),
                codes=("malformed_request", "validation_failed"),
            ),
            Operation(
                "listKeys", "GET", at, self.list, "Keys on record, never their secrets.", ADMINS,
                answer=key_shapes.KeyList, parameters=(Parameter("tenant", "Only this tenant's."), *PAGING),
                codes=("malformed_request", "validation_failed"),
            ),
            Operation(
                "rotateKey", "POST", f"{at}/{{key_id}}:rotate", self.rotate,
                "Give a key a new text, shown this once; the old one may hold for a while.", ADMINS,
                answer=key_shapes.NewKey, takes=ROTATE_SCHEMA, types=frozenset({JSON}),
                codes=("malformed_request", "validation_failed", "not_found", "conflict"),
            ),
            Operation(
                "revokeKey", "DELETE", f"{at}/{{key_id}}", self.revoke, "End a key.", ADMINS, 204,
                codes=("not_found", "conflict"),
            ),
        )  # fmt: skip


def _time(body: Reader) -> datetime | None:
    text = body.text("expires_at")
    if not text:
        return None
    moment = queries.instant(text)
    if moment is None:
        body.refuse("expires_at", "must be a time in RFC 3339 with its offset, for example 2027-01-31T12:00:00Z")
    return moment


def _record(key: Key) -> key_shapes.KeyRecord:
    return key_shapes.KeyRecord(
        key.id, key.tenant, sorted(key.scopes), key.created_at, key.expires_at, key.revoked_at, key.former_until
    )
