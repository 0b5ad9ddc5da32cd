"""/v1/operator: what operators watch and do: health, capacity, alerts, uncertain submissions."""

from typing import Any

from starlette.responses import Response

from services.edge.domain import alert_shapes, queries, shapes
from services.edge.ports import Capacity, Health, Routing
from services.edge.routes.answers import answer
from services.edge.routes.bodies import SMALL_BODY_BYTES, read_object, read_reason
from services.edge.routes.operations import JSON, OPERATORS, PAGING, REASON_SCHEMA, Asked, Handler, Operation, Parameter

RESOLUTIONS = ("accepted", "not_accepted")
RESOLVE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["resolution"],
    "properties": {
        "resolution": {"enum": list(RESOLUTIONS)},
        "provider_task_id": {"type": "string", "description": "With `accepted`: the provider's id of the job."},
        "comment": {"type": "string"},
    },
}

SUBJECTS = (
    Parameter("channel", "Only this Channel; may be repeated. Without `supply` no Supplies are told.", repeats=True),
    Parameter("supply", "Only this Supply; may be repeated. Without `channel` no Channels are told.", repeats=True),
)


class OperatorRoutes:
    """The handlers with what they need."""

    def __init__(self, routing: Routing, health: Health, capacity: Capacity) -> None:
        self._routing = routing
        self._health = health
        self._capacity = capacity

    async def health(self, asked: Asked) -> Response:
        """The breaker of every Channel and Supply, or of those that are named."""
        found, named = await self._health.snapshot(), _named(asked)
        if named is None:
            return answer(found)
        channels, supplies = named
        return answer(
            shapes.Health(
                [item for item in found.channels if item.id in channels],
                [item for item in found.supplies if item.id in supplies],
            )
        )

    def _circuit(self, sort: str, opened: bool) -> Handler:
        async def set_circuit(asked: Asked) -> Response:
            by = f"{await read_reason(asked.request)} (key {asked.caller.key_id})".strip()
            return answer(await self._health.set_circuit(sort, asked.path("id"), opened, by))

        return set_circuit

    async def capacity(self, asked: Asked) -> Response:
        """Slots and windows of every Channel and Supply, or of those that are named, and the live leases there."""
        found, named = await self._capacity.figures(), _named(asked)
        if named is None:
            return answer(found)
        channels, supplies = named
        return answer(
            shapes.Capacity(
                [item for item in found.channels if item.id in channels],
                [item for item in found.supplies if item.id in supplies],
                [lease for lease in found.leases if lease.channel in channels or lease.supply in supplies],
            )
        )

    async def alerts(self, asked: Asked) -> Response:
        """Open ones first, the worst consequence first, then the newest."""
        size, token = queries.page_size(asked.query("page_size")), asked.query("page_token") or ""
        kind, subject = asked.query("kind") or "", asked.query("subject") or ""
        open_only = queries.flag(asked.query("open"), "open")
        return answer(alert_shapes.AlertList(*await self._routing.alerts(kind, subject, open_only, size, token)))

    async def acknowledge(self, asked: Asked) -> Response:
        """The alert, seen by an operator."""
        return answer(await self._routing.acknowledge(asked.path("alert_id")))

    async def uncertain(self, asked: Asked) -> Response:
        """Attempts whose submission is uncertain or unresolved."""
        size, token = queries.page_size(asked.query("page_size")), asked.query("page_token") or ""
        return answer(shapes.UncertainList(*await self._routing.uncertain(size, token)))

    async def resolve(self, asked: Asked) -> Response:
        """The Task after an operator's word on one of its Attempts."""
        body = await read_object(asked.request, SMALL_BODY_BYTES)
        resolution = body.choice("resolution", RESOLUTIONS, required=True)
        provider_task_id = body.text("provider_task_id", required=resolution == "accepted")
        if resolution == "not_accepted" and provider_task_id:
            body.refuse("provider_task_id", "goes with `accepted` alone")
        comment = body.text("comment")
        body.finish()
        return answer(await self._routing.resolve(asked.path("attempt_id"), resolution, provider_task_id, comment))

    def operations(self) -> tuple[Operation, ...]:
        """What is served."""
        at = "/v1/operator"
        filters = (
            Parameter("kind", "Only this kind."),
            Parameter("subject", "Only about this id."),
            Parameter("open", "Only those that nobody has acknowledged.", {"type": "boolean", "default": False}),
        )
        return (
            Operation(
                "getHealth", "GET", f"{at}/health", self.health, "The breaker of every Channel and Supply.", OPERATORS,
                answer=shapes.Health, parameters=SUBJECTS,
            ),
            *self._breakers(at),
            Operation(
                "getCapacity", "GET", f"{at}/capacity", self.capacity, "Slots in use, windows and leases.", OPERATORS,
                answer=shapes.Capacity, parameters=SUBJECTS,
            ),
            Operation(
                "listAlerts", "GET", f"{at}/alerts", self.alerts,
                "Alerts: open ones first, the worst consequence first, then the newest.", OPERATORS,
                answer=alert_shapes.AlertList, parameters=(*filters, *PAGING),
                codes=("malformed_request", "validation_failed"),
            ),
            Operation(
                "acknowledgeAlert", "POST", f"{at}/alerts/{{alert_id}}:acknowledge", self.acknowledge,
                "Say that an alert was seen; the same cause raises a new one from now on.", OPERATORS,
                answer=alert_shapes.Alert, codes=("not_found",),
            ),
            Operation(
                "listUncertain", "GET", f"{at}/uncertain", self.uncertain,
                "Attempts of which nobody knows whether the provider took them.", OPERATORS,
                answer=shapes.UncertainList, parameters=PAGING, codes=("malformed_request", "validation_failed"),
            ),
            Operation(
                "resolveAttempt", "POST", f"{at}/attempts/{{attempt_id}}/resolve", self.resolve,
                "An operator's word on an uncertain submission.", OPERATORS, answer=shapes.Task, takes=RESOLVE_SCHEMA,
                types=frozenset({JSON}), codes=("malformed_request", "not_found", "conflict", "validation_failed"),
            ),
        )  # fmt: skip

    def _breakers(self, at: str) -> tuple[Operation, ...]:
        return tuple(
            Operation(
                f"{verb}{sort.capitalize()}Circuit", "POST", f"{at}/{plural}/{{id:path}}:{verb}-circuit",
                self._circuit(sort, verb == "open"), told, OPERATORS, answer=shapes.SubjectHealth,
                takes=REASON_SCHEMA, types=frozenset({JSON}),
                codes=("malformed_request", "not_found", "conflict", "validation_failed"),
            )
            for sort, plural in (("supply", "supplies"), ("channel", "channels"))
            for verb, told in (
                ("close", f"Use a {sort} again at once, whatever its breaker had seen."),
                ("open", f"Keep a {sort} out as after a failure: probed when its cooldown is over."),
            )
        )  # fmt: skip


def _named(asked: Asked) -> tuple[frozenset[str], frozenset[str]] | None:
    """(Channels, Supplies) that a caller names; None for all."""
    channels, supplies = (frozenset(filter(None, asked.every(name))) for name in ("channel", "supply"))
    return (channels, supplies) if channels or supplies else None
