"""/v1/operator: people's desks. Reviews that wait for a decision, and case files of what ended without a result."""

from dataclasses import replace
from typing import Any

from starlette.responses import Response

from services.edge.app.take_materials import TakeMaterials
from services.edge.domain import queries, run_shapes
from services.edge.domain.decisions import DECISIONS, read_verdict
from services.edge.ports import Desks
from services.edge.routes.answers import answer
from services.edge.routes.bodies import COMMAND_BODY_BYTES, SMALL_BODY_BYTES, read_object
from services.edge.routes.operations import JSON, OPERATORS, PAGING, TEXT, Asked, Operation, Parameter

REVIEW_STATUSES = ("open", "claimed", "decided", "withdrawn")
DECIDE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["decision"],
    "properties": {
        "decision": {"enum": list(DECISIONS)},
        "comment": {"type": "string", "maxLength": 4096},
        "input": {
            "type": "object",
            "description": "With change_input: fields to merge in. `node`, with reroute too: which one of several.",
        },
        "budget": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "currency": TEXT,
                "amount": TEXT,
                "attempts": {"type": "integer", "minimum": 1},
                "review_minutes": {"type": "integer", "minimum": 1},
            },
            "description": "With raise_budget: the new hard limit of what is refused; of money, currency and amount.",
        },
        "supply": {**TEXT, "description": "With reroute: the supply that makes it."},
        "subject_hash": {**TEXT, "description": "What was looked at; another subject by now is a conflict."},
    },
}
CLAIM_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"who": {**TEXT, "description": "Whom it is handed to; without it, the holder of the key."}},
}


class DeskRoutes:
    """The handlers with what they need."""

    def __init__(self, desks: Desks, take_materials: TakeMaterials) -> None:
        self._desks = desks
        self._take_materials = take_materials

    async def reviews(self, asked: Asked) -> Response:
        """In the order of the queue; without a status, those that wait."""
        statuses = queries.words(asked.every("status"), "status", REVIEW_STATUSES)
        size, token = queries.page_size(asked.query("page_size")), asked.query("page_token") or ""
        tenant, run_id = asked.query("tenant") or "", asked.query("run") or ""
        return answer(run_shapes.ReviewList(*await self._desks.reviews(tenant, statuses, run_id, size, token)))

    async def review(self, asked: Asked) -> Response:
        """One, whatever became of it."""
        return answer(await self._desks.review(asked.path("review_id")))

    async def claim(self, asked: Asked) -> Response:
        """The review, for whoever asks or is named."""
        body = await read_object(asked.request, SMALL_BODY_BYTES, optional=True)
        who = body.text("who", longest=200) or asked.caller.key_id
        body.finish()
        return answer(await self._desks.claim(asked.path("review_id"), who))

    async def decide(self, asked: Asked) -> Response:
        """The review, decided by the holder of the key."""
        verdict, materials = read_verdict(await read_object(asked.request, COMMAND_BODY_BYTES))
        if materials:
            verdict = replace(verdict, input=await self._take_materials(asked.caller, verdict.input, materials))
        return answer(await self._desks.decide(asked.path("review_id"), asked.caller.key_id, verdict))

    async def dead_letters(self, asked: Asked) -> Response:
        """Newest first; without `redriven`, those that lie there."""
        size, token = queries.page_size(asked.query("page_size")), asked.query("page_token") or ""
        redriven = queries.flag(asked.query("redriven"), "redriven")
        tenant, run_id = asked.query("tenant") or "", asked.query("run") or ""
        return answer(run_shapes.DeadLetterList(*await self._desks.dead_letters(tenant, run_id, redriven, size, token)))

    async def dead_letter(self, asked: Asked) -> Response:
        """One case file."""
        return answer(await self._desks.dead_letter(asked.path("letter_id")))

    def operations(self) -> tuple[Operation, ...]:
        """What is served."""
        at = "/v1/operator"
        whose = (Parameter("tenant", "Only this tenant's."), Parameter("run", "Only of this Run."))
        status = Parameter(
            "status", "Only these, repeated or separated by commas; without it, what waits.", repeats=True
        )
        redriven = Parameter("redriven", "Also those that were redriven.", {"type": "boolean", "default": False})
        return (
            Operation(
                "listReviews", "GET", f"{at}/reviews", self.reviews, "Questions that wait for a person.", OPERATORS,
                answer=run_shapes.ReviewList, parameters=(status, *whose, *PAGING),
                codes=("malformed_request", "validation_failed"),
            ),
            Operation(
                "getReview", "GET", f"{at}/reviews/{{review_id}}", self.review,
                "One question with all that is needed to decide it, or what became of it.", OPERATORS,
                answer=run_shapes.Review, codes=("not_found",),
            ),
            Operation(
                "claimReview", "POST", f"{at}/reviews/{{review_id}}/claim", self.claim,
                "Take a review to look at, or hand it on.", OPERATORS, answer=run_shapes.Review, takes=CLAIM_SCHEMA,
                types=frozenset({JSON}), codes=("malformed_request", "not_found", "conflict", "validation_failed"),
            ),
            Operation(
                "decideReview", "POST", f"{at}/reviews/{{review_id}}/decide", self.decide, "Decide a review, once.",
                OPERATORS, answer=run_shapes.Review, takes=DECIDE_SCHEMA, types=frozenset({JSON}),
                codes=("malformed_request", "not_found", "conflict", "validation_failed", "url_not_allowed",
                       "material_unreachable"),
            ),
            Operation(
                "listDeadLetters", "GET", f"{at}/dead-letters", self.dead_letters,
                "Nodes that ended without a result, as case files.", OPERATORS, answer=run_shapes.DeadLetterList,
                parameters=(redriven, *whose, *PAGING), codes=("malformed_request", "validation_failed"),
            ),
            Operation(
                "getDeadLetter", "GET", f"{at}/dead-letters/{{letter_id}}", self.dead_letter, "One case file.",
                OPERATORS, answer=run_shapes.DeadLetter, codes=("not_found",),
            ),
        )  # fmt: skip
