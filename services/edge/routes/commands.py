"""/v1/runs/{id}: steer, pause, resume and redrive. The Idempotency-Key of each is the id of the command (RUN-8)."""

from dataclasses import replace
from typing import Any

from starlette.responses import Response

from libs.kernel.canonical import digest
from services.edge.app.reveal import Reveal
from services.edge.app.take_materials import TakeMaterials
from services.edge.domain import queries, run_shapes, shapes
from services.edge.domain.decisions import Command, Redrive
from services.edge.domain.orders import DATA, INPUT, materials_within
from services.edge.ports import Runs
from services.edge.routes.answers import answer
from services.edge.routes.bodies import COMMAND_BODY_BYTES, read_object, read_reason
from services.edge.routes.operations import (
    JSON,
    OPERATORS,
    REASON,
    REASON_SCHEMA,
    TEXT,
    USERS,
    Asked,
    Operation,
    Parameter,
)

REDRIVERS = USERS | OPERATORS
STEER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["kind", "data"],
    "properties": {
        "kind": {**TEXT, "description": "As nodes declare it in `consumes_steering`."},
        "data": {
            "type": "object",
            "description": "`text` is appended to the field that the node names, `value` replaces it.",
        },
    },
}
REDRIVE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "node": {**TEXT, "description": "Without it, every node that failed."},
        "input": {"type": "object", "description": "Fields of the node's input that change; null takes one away."},
        "supply": {**TEXT, "description": "The only supply that may make it from now on."},
        "reason": REASON,
    },
}


class CommandRoutes:
    """The handlers with what they need."""

    def __init__(self, runs: Runs, reveal: Reveal, take_materials: TakeMaterials) -> None:
        self._runs = runs
        self._reveal = reveal
        self._take_materials = take_materials

    async def pause(self, asked: Asked) -> Response:
        """202 with the Run, paused."""
        reason = await read_reason(asked.request)
        command = _command(asked, "pause", reason)
        run, replayed = await self._runs.pause(asked.tenant, asked.path("run_id"), reason, command)
        await self._reveal.run(asked.tenant, run)
        return _taken(run, replayed)

    async def resume(self, asked: Asked) -> Response:
        """202 with the Run, going on."""
        reason = await read_reason(asked.request)
        command = _command(asked, "resume", reason)
        run, replayed = await self._runs.resume(asked.tenant, asked.path("run_id"), reason, command)
        await self._reveal.run(asked.tenant, run)
        return _taken(run, replayed)

    async def steer(self, asked: Asked) -> Response:
        """202 with the id of the input."""
        body = await read_object(asked.request, COMMAND_BODY_BYTES)
        kind, data = body.text("kind", required=True, longest=200), body.object("data", required=True)
        if not ({"text", "value"} & data.keys()):
            body.refuse("data", "must hold `text`, which is appended, or `value`, which replaces")
        elif "text" in data and not isinstance(data["text"], str):
            body.nested("data").refuse("text", "must be a text")
        materials = tuple(materials_within(data, DATA, body.errors))
        body.finish()
        command = _command(asked, "steer", [kind, data])
        data = await self._take_materials(asked.caller, data, materials, DATA)
        return _taken(*await self._runs.steer(asked.tenant, asked.path("run_id"), kind, data, command))

    async def redrive(self, asked: Asked) -> Response:
        """202 with the Run, at work again."""
        reached, replayed = await self._redriven(asked, preview=False)
        return _taken(reached.run, replayed)

    async def preview(self, asked: Asked) -> Response:
        """What a redrive would reach and may cost; nothing runs."""
        reached, _ = await self._redriven(asked, preview=True)
        return answer(reached)

    async def _redriven(self, asked: Asked, *, preview: bool) -> tuple[run_shapes.Redriven, bool]:
        """Operators redrive what lies on their desks, whosever it is; they need no leave to see its artifacts."""
        body = await read_object(asked.request, COMMAND_BODY_BYTES, optional=True)
        wanted = Redrive(
            node=body.text("node", longest=200),
            reason=body.text("reason"),
            input=body.object("input") if body.has("input") else None,
            supply=body.text("supply", longest=200),
            preview=preview,
        )
        materials = tuple(materials_within(wanted.input or {}, INPUT, body.errors))
        body.finish()
        command = _command(asked, "redrive", wanted)
        if materials:
            wanted = replace(wanted, input=await self._take_materials(asked.caller, wanted.input or {}, materials))
        if asked.caller.operator:
            return await self._runs.redrive("", asked.path("run_id"), wanted, command)
        reached, replayed = await self._runs.redrive(asked.tenant, asked.path("run_id"), wanted, command)
        await self._reveal.run(asked.tenant, reached.run)
        return reached, replayed

    def operations(self) -> tuple[Operation, ...]:
        """What is served."""
        one = "/v1/runs/{run_id}"
        key = Parameter("Idempotency-Key", "The id of the command: a repeat of it changes nothing.", where="header")
        codes = ("malformed_request", "not_found", "run_terminal", "validation_failed", "idempotency_conflict")
        taking = (*codes, "url_not_allowed", "material_unreachable")
        json = frozenset({JSON})
        return (
            Operation(
                "pauseRun", "POST", f"{one}/pause", self.pause,
                "Hold the Run: nothing new is submitted, what providers have is followed.", USERS, 202, shapes.Run,
                takes=REASON_SCHEMA, types=json, parameters=(key,), codes=codes,
            ),
            Operation(
                "resumeRun", "POST", f"{one}/resume", self.resume, "Let a paused Run go on.", USERS, 202, shapes.Run,
                takes=REASON_SCHEMA, types=json, parameters=(key,), codes=codes,
            ),
            Operation(
                "steerRun", "POST", f"{one}/steer", self.steer, "Give an input to a Run under way.", USERS, 202,
                run_shapes.Steered, takes=STEER_SCHEMA, types=json, parameters=(key,),
                codes=(*taking, "quota_exceeded"),
            ),
            Operation(
                "redriveRun", "POST", f"{one}/redrive", self.redrive,
                "Run nodes again, on the same nodes with all their history; operators those of any tenant.", REDRIVERS,
                202, shapes.Run, takes=REDRIVE_SCHEMA, types=json, parameters=(key,), codes=(*taking, "conflict"),
            ),
            Operation(
                "previewRedrive", "POST", f"{one}/redrive/preview", self.preview,
                "Tell which nodes a redrive would reach and what that may cost; nothing runs.", REDRIVERS,
                answer=run_shapes.Redriven, takes=REDRIVE_SCHEMA, types=json, codes=(*taking, "conflict"),
            ),
        )  # fmt: skip


def _command(asked: Asked, name: str, body: object) -> Command:
    """Its id is `NAME:KEY#HASH`: the same key with another body, or on another route, is another command."""
    key = queries.idempotency_key(asked.request.headers.get("idempotency-key"))
    return Command(asked.caller.key_id, f"{name}:{key}#{digest(body)[:32]}" if key else "")


def _taken(told: object, replayed: bool) -> Response:
    """202, with a header that says so for a command that had been taken before (IDEM-1)."""
    return answer(told, 202, {"idempotency-replayed": "true"} if replayed else None)
