"""/v1/operator/catalog, supplies, channels, models: what is on offer, and an operator's word on it."""

from typing import Any

from starlette.responses import Response

from libs.faults.fault import Fault, FieldError
from libs.kernel.ids import Ids
from services.edge.domain import evidence_shapes, queries, shapes
from services.edge.ports import Catalog
from services.edge.routes.answers import answer
from services.edge.routes.bodies import SMALL_BODY_BYTES, read_object, read_reason, read_text
from services.edge.routes.operations import JSON, OPERATORS, REASON_SCHEMA, YAML, Asked, Handler, Operation, Parameter

CATALOG_LIMIT_BYTES = 3 * 1024 * 1024
"""Below the limit of one message between contexts."""
KINDS = ("channel", "supply", "price", "policy", "degradation_rule", "model", "tenant")
VERBS = {"disable": "disabled", "enable": "enabled", "drain": "draining"}
LONGEST_WAIT_S, DEFAULT_WAIT_S = 60.0, 25.0
VERIFY_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "request_id": {"type": "string", "maxLength": 64, "description": "Goes on with the verification of that id."},
        "timeout_s": {"type": "number", "minimum": 0, "maximum": LONGEST_WAIT_S, "default": DEFAULT_WAIT_S},
    },
}
BOOLEAN = {"type": "boolean", "default": False}


class CatalogRoutes:
    """The handlers with what they need."""

    def __init__(self, catalog: Catalog, ids: Ids) -> None:
        self._catalog = catalog
        self._ids = ids

    async def show(self, asked: Asked) -> Response:
        """Everything that is declared."""
        kind = asked.query("kind") or ""
        if kind and kind not in KINDS:
            raise Fault.invalid(("/query/kind", f"must be one of {', '.join(KINDS)}"))
        return answer(await self._catalog.show(kind, queries.flag(asked.query("retired"), "retired")))

    async def apply(self, asked: Asked) -> Response:
        """Apply the file of the body, all or nothing."""
        merge = queries.flag(asked.query("merge"), "merge")
        return answer(await self._catalog.apply(await read_text(asked.request, CATALOG_LIMIT_BYTES), merge))

    async def diff(self, asked: Asked) -> Response:
        """What applying it would change."""
        merge = queries.flag(asked.query("merge"), "merge")
        return answer(await self._catalog.diff(await read_text(asked.request, CATALOG_LIMIT_BYTES), merge))

    async def publish(self, asked: Asked) -> Response:
        """Open a model, or 422 with every reason why it does not pass the gate."""
        standing = await self._catalog.publish(asked.path("model_id"))
        if standing.published:
            return answer(standing)
        reasons = tuple(FieldError("", reason) for reason in standing.reasons)
        told = f"model {standing.model!r} does not pass the publish gate: {'; '.join(standing.reasons)}"
        raise Fault.of("catalog_not_publishable", told, errors=reasons)

    async def verify(self, asked: Asked) -> Response:
        """Run a supply's regression set, or go on with the one that `request_id` names."""
        body = await read_object(asked.request, SMALL_BODY_BYTES, optional=True)
        verification_id = body.text("request_id", longest=64) or self._ids.ulid()
        wait_s = body.seconds("timeout_s", 0, LONGEST_WAIT_S)
        body.finish()
        wait_s = DEFAULT_WAIT_S if wait_s is None else wait_s
        return answer(await self._catalog.verify(asked.path("id"), verification_id, wait_s))

    def _admin(self, sort: str, state: str) -> Handler:
        async def set_state(asked: Asked) -> Response:
            by = f"{await read_reason(asked.request)} (key {asked.caller.key_id})".strip()
            return answer(await self._catalog.set_admin_state(sort, asked.path("id"), state, by))

        return set_state

    def operations(self) -> tuple[Operation, ...]:
        """What is served."""
        at = "/v1/operator"
        merge = Parameter("merge", "Keep what the file does not name.", BOOLEAN)
        told = ("malformed_request", "payload_too_large", "unsupported_media_type", "validation_failed")
        file: dict[str, Any] = {
            "types": frozenset({YAML}),
            "parameters": (merge,),
            "codes": (*told, "catalog_invalid"),
        }
        return (
            Operation(
                "showCatalog", "GET", f"{at}/catalog", self.show, "Everything that is declared.", OPERATORS,
                answer=shapes.Catalog, codes=("validation_failed",),
                parameters=(
                    Parameter("kind", "Only this sort.", {"enum": list(KINDS)}),
                    Parameter("retired", "Also what the last file no longer names.", BOOLEAN),
                ),
            ),
            Operation(
                "applyCatalog", "POST", f"{at}/catalog:apply", self.apply, "Apply a catalogue file, all or nothing.",
                OPERATORS, answer=shapes.Applied, **file,
            ),
            Operation(
                "diffCatalog", "POST", f"{at}/catalog:diff", self.diff, "What applying a file would change.",
                OPERATORS, answer=shapes.CatalogDiff, **file,
            ),
            Operation(
                "publishModel", "POST", f"{at}/models/{{model_id:path}}:publish", self.publish,
                "Open a model to callers, if it passes the gate.", OPERATORS, answer=shapes.Publication,
                codes=("not_found", "catalog_not_publishable"),
            ),
            Operation(
                "verifySupply", "POST", f"{at}/supplies/{{id:path}}:verify", self.verify,
                "Run a supply's regression set with real requests; the verdict is its evidence as an alternative.",
                OPERATORS, answer=evidence_shapes.Verification, takes=VERIFY_SCHEMA, types=frozenset({JSON}),
                codes=("malformed_request", "not_found", "validation_failed", "idempotency_conflict"),
            ),
            *(
                Operation(
                    f"{verb}{sort.capitalize()}", "POST", f"{at}/{plural}/{{id:path}}:{verb}",
                    self._admin(sort, state), f"Set a {sort} to {state}.", OPERATORS, answer=shapes.CatalogObject,
                    takes=REASON_SCHEMA, types=frozenset({JSON}),
                    codes=("malformed_request", "not_found", "validation_failed"),
                )
                for sort, plural in (("supply", "supplies"), ("channel", "channels"))
                for verb, state in VERBS.items()
            ),
        )  # fmt: skip
