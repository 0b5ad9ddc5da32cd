"""/v1/runs: create, read, list, join, cancel, events."""

from typing import Any

from starlette.responses import Response

from services.edge.app.cancel_by_key import CancelByKey
from services.edge.app.create_run import CreateRun
from services.edge.app.reveal import Reveal
from services.edge.domain import queries, shapes
from services.edge.domain.open_limits import Hold
from services.edge.domain.orders import BILLING_MODES, DEGRADATIONS, PRIORITIES
from services.edge.ports import Runs
from services.edge.routes.answers import answer, left
from services.edge.routes.bodies import SMALL_BODY_BYTES, read_json, read_object, read_reason
from services.edge.routes.input_schemas import INPUT
from services.edge.routes.operations import JSON, PAGING, REASON, REASON_SCHEMA, USERS, Asked, Operation, Parameter
from services.edge.routes.presence import Presence

LONGEST_JOIN_S = 600
DEFAULT_JOIN_S = 30
AFTER = Parameter("after", "Only events after this sequence.", {"type": "integer", "minimum": 0, "default": 0})
FILTERS = (
    Parameter("status", "Only these, repeated or separated by commas.", repeats=True),
    Parameter("label", "Only with this label, `name` or `name=value`."),
)
BESIDE: dict[str, Any] = {
    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    "callback_url": {"type": "string", "format": "uri"},
}
SINGLE: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["model", "input"],
    "properties": {
        "model": {"type": "string", "description": "A Public Model of `GET /v1/models`."},
        "input": INPUT,
        "options": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "degradation": {"enum": list(DEGRADATIONS)},
                "billing_mode": {"enum": list(BILLING_MODES)},
                "priority": {"enum": list(PRIORITIES)},
                "deadline_s": {"type": "number", "minimum": 1, "description": "No result is wanted after this long."},
                "timeout_s": {"type": "number", "minimum": 1, "description": "The same; the shorter one holds."},
                "budget": {"type": "string", "description": "The budget that it is paid from."},
            },
        },
        **BESIDE,
    },
}
PRODUCTION: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["production"],
    "properties": {
        "production": {
            "type": "object",
            "required": ["production", "nodes"],
            "properties": {"production": {"type": "string"}, "nodes": {"type": "array", "items": {"type": "object"}}},
            "description": "The whole production document; the guide on productions tells its fields.",
        },
        **BESIDE,
    },
}
ORDER_SCHEMA: dict[str, Any] = {"oneOf": [SINGLE, PRODUCTION]}
CANCEL_BY_KEY_SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["idempotency_key"],
    "properties": {
        "idempotency_key": {"type": "string", "minLength": 1, "maxLength": queries.LONGEST_KEY},
        "reason": REASON,
    },
}


class RunRoutes:
    """The handlers with what they need."""

    def __init__(
        self, runs: Runs, reveal: Reveal, create: CreateRun, cancel_by_key: CancelByKey, body_limit_bytes: int
    ) -> None:
        self._runs = runs
        self._reveal = reveal
        self._create = create
        self._cancel_by_key = cancel_by_key
        self._body_limit_bytes = body_limit_bytes

    async def create(self, asked: Asked) -> Response:
        """202 with the Run; the same again, and a header that says so, for a key that came before (IDEM-1)."""
        key = queries.idempotency_key(asked.request.headers.get("idempotency-key"))
        body = await read_json(asked.request, self._body_limit_bytes)
        run, replayed = await self._create(asked.caller, body, key)
        await self._reveal.run(asked.tenant, run)
        headers = {"location": f"/v1/runs/{run.id}"}
        if replayed:
            headers["idempotency-replayed"] = "true"
        return answer(run, 202, headers)

    async def get(self, asked: Asked) -> Response:
        """The Run; its faults are data (EDG-4)."""
        run, _ = await self._runs.get(asked.tenant, asked.path("run_id"))
        await self._reveal.run(asked.tenant, run)
        return answer(run)

    async def list(self, asked: Asked) -> Response:
        """A page, newest first."""
        statuses = queries.statuses(asked.every("status"))
        size = queries.page_size(asked.query("page_size"))
        label, token = asked.query("label") or "", asked.query("page_token") or ""
        runs, following = await self._runs.page(asked.tenant, statuses, label, size, token)
        await self._reveal.run(asked.tenant, *runs)
        return answer(shapes.RunPage(runs, following))

    async def join(self, asked: Asked) -> Response:
        """The Run at rest, or 504 join_timeout. A client that leaves ends the waiting, and nothing else."""
        timeout_s = queries.number(asked.query("timeout_s"), "timeout_s", DEFAULT_JOIN_S, 1, LONGEST_JOIN_S)
        async with Presence(asked.request.scope, asked.request.receive):
            run = await self._runs.join(asked.tenant, asked.path("run_id"), timeout_s)
            await self._reveal.run(asked.tenant, run)
            return answer(run)
        return left()

    async def cancel(self, asked: Asked) -> Response:
        """202 with the Run; the cancel is on record, the Run may still be ending."""
        reason = await read_reason(asked.request)
        run = await self._runs.cancel(asked.tenant, asked.path("run_id"), reason, asked.caller.key_id)
        await self._reveal.run(asked.tenant, run)
        return answer(run, 202)

    async def cancel_by_key(self, asked: Asked) -> Response:
        """202 with the Run that came of the key, its cancel on record (IDEM-3)."""
        body = await read_object(asked.request, SMALL_BODY_BYTES)
        key, reason = body.text("idempotency_key", required=True), body.text("reason")
        if key and not queries.fits_key(key):
            body.refuse("idempotency_key", f"must be 1 to {queries.LONGEST_KEY} visible ASCII characters")
        body.finish()
        run = await self._cancel_by_key(asked.caller, key, reason)
        await self._reveal.run(asked.tenant, run)
        return answer(run, 202)

    async def events(self, asked: Asked) -> Response:
        """Events after a cursor."""
        after = queries.cursor(asked.query("after"), "after")
        size = queries.page_size(asked.query("limit"), "limit")
        events = await self._runs.events(asked.tenant, asked.path("run_id"), after, size)
        await self._reveal.events(asked.tenant, events)
        return answer(shapes.EventPage(events))

    def operations(self) -> tuple[Operation, ...]:
        """What is served."""
        one = "/v1/runs/{run_id}"
        key = Parameter("Idempotency-Key", "The same key and body make one Run.", where="header")
        seconds = {"type": "number", "minimum": 1, "maximum": LONGEST_JOIN_S, "default": DEFAULT_JOIN_S}
        return (
            Operation(
                "createRun", "POST", "/v1/runs", self.create, "Create a Run; answers before any work is done.", USERS,
                202, shapes.Run, takes=ORDER_SCHEMA, types=frozenset({JSON}), parameters=(key,),
                codes=("malformed_request", "model_not_published", "payload_too_large", "unsupported_media_type",
                       "validation_failed", "url_not_allowed", "material_unreachable", "idempotency_conflict",
                       "idempotency_in_progress"),
            ),
            Operation(
                "listRuns", "GET", "/v1/runs", self.list, "Runs of the key's tenant, newest first.", USERS,
                answer=shapes.RunPage, codes=("malformed_request", "validation_failed"),
                parameters=(*FILTERS, *PAGING),
            ),
            Operation("getRun", "GET", one, self.get, "One Run.", USERS, answer=shapes.Run, codes=("not_found",)),
            Operation(
                "joinRun", "GET", f"{one}/join", self.join, "Wait until the Run is terminal or paused.", USERS,
                answer=shapes.Run, parameters=(Parameter("timeout_s", "How long.", seconds),),
                codes=("not_found", "validation_failed", "join_timeout"), head=False, holds=Hold.JOIN,
            ),
            Operation(
                "listRunEvents", "GET", f"{one}/events", self.events, "Events after a cursor, in order.", USERS,
                answer=shapes.EventPage,
                codes=("malformed_request", "not_found", "history_pruned", "validation_failed"),
                parameters=(AFTER, Parameter("limit", "At most this many.", PAGING[0].schema)),
            ),
            Operation(
                "cancelRun", "POST", f"{one}/cancel", self.cancel, "Ask for the Run to end.", USERS, 202, shapes.Run,
                takes=REASON_SCHEMA, types=frozenset({JSON}),
                codes=("malformed_request", "not_found", "run_terminal", "validation_failed"),
            ),
            Operation(
                "cancelRunByKey", "POST", "/v1/runs:cancelByKey", self.cancel_by_key,
                "Ask for the Run that came of an idempotency key to end, before its id is known.", USERS, 202,
                shapes.Run, takes=CANCEL_BY_KEY_SCHEMA, types=frozenset({JSON}),
                codes=("malformed_request", "not_found", "run_terminal", "validation_failed",
                       "idempotency_in_progress"),
            ),
        )  # fmt: skip
