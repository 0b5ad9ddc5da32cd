"""/v1/invoke, /v1/ocr, /v1/calls: synchronous calls in our own shape, and their records."""

from typing import Any

import msgspec
from starlette.responses import Response

from services.edge.app.reveal import Reveal
from services.edge.domain import call_shapes, openai_requests, replay_shapes
from services.edge.domain.call_headers import headers_of
from services.edge.domain.calls import Receipt
from services.edge.domain.keys import Scope
from services.edge.domain.open_limits import Hold
from services.edge.ports import Calls
from services.edge.routes import call_schemas
from services.edge.routes.answers import answer, left
from services.edge.routes.calling import Calling
from services.edge.routes.operations import CALLERS, JSON, Asked, Operation
from services.edge.routes.tasks import tenant_of

SEERS = frozenset({Scope.INVOKE, Scope.OPERATE, Scope.ADMIN})


class CallRoutes:
    """The handlers with what they need."""

    def __init__(self, calling: Calling, calls: Calls, reveal: Reveal) -> None:
        self._calling = calling
        self._calls = calls
        self._reveal = reveal

    async def invoke(self, asked: Asked) -> Response:
        """A call of any synchronous kind."""
        order = openai_requests.read_invoke(*await self._calling.fields(asked))
        served = await self._calling.served(asked, order)
        if served is None:
            return left()
        return answer(_result(order.model, served.output, served.receipt), headers=headers_of(served.receipt))

    async def ocr(self, asked: Asked) -> Response:
        """The text of a picture."""
        order = openai_requests.read_ocr(*await self._calling.fields(asked))
        served = await self._calling.served(asked, order)
        if served is None:
            return left()
        found = msgspec.json.decode(served.output)
        read = call_shapes.OcrResult(served.receipt.call_id, order.model, found["text"], found.get("blocks") or [])
        return answer(read, headers=headers_of(served.receipt))

    async def get(self, asked: Asked) -> Response:
        """A call on record, with every try and why each was chosen."""
        call = await self._calls.get(tenant_of(asked), asked.path("call_id"))
        if not asked.caller.operator:
            await self._reveal.grant(asked.tenant, [artifact.sha256 for artifact in call.artifacts])
        return answer(call)

    async def replay(self, asked: Asked) -> Response:
        """Every round of a call, decided again from its saved inputs."""
        return answer(await self._calls.replay(tenant_of(asked), asked.path("call_id")))

    def operations(self) -> tuple[Operation, ...]:
        """What is served."""
        shared: dict[str, Any] = {"types": frozenset({JSON}), "parameters": call_schemas.HEADERS, "head": False}
        shared["holds"] = Hold.CALL
        return (
            Operation(
                "invoke", "POST", "/v1/invoke", self.invoke, "Serve a request of a synchronous kind at once.", CALLERS,
                answer=call_shapes.CallResult, takes=call_schemas.INVOKE, codes=call_schemas.CODES, **shared,
            ),
            Operation(
                "readText", "POST", "/v1/ocr", self.ocr, "Read the text of a picture.", CALLERS,
                answer=call_shapes.OcrResult, takes=call_schemas.OCR, codes=call_schemas.CODES, **shared,
            ),
            Operation(
                "getCall", "GET", "/v1/calls/{call_id}", self.get,
                "A synchronous call on record: tries, times, cost, and why each Supply was chosen.", SEERS,
                answer=call_shapes.Call, codes=("not_found",),
            ),
            Operation(
                "replayCall", "GET", "/v1/calls/{call_id}/replay", self.replay,
                "Every selection round decided again from its saved inputs, compared byte for byte.", SEERS,
                answer=replay_shapes.CallReplay, codes=("not_found",),
            ),
        )  # fmt: skip


def _result(model: str, output: bytes, receipt: Receipt) -> call_shapes.CallResult:
    tokens = receipt.tokens
    usage = call_shapes.CallUsage(
        receipt.cost,
        receipt.attempts,
        receipt.supply or None,
        tokens.input,
        tokens.cached_input,
        tokens.output,
        tokens.reasoning,
    )
    return call_shapes.CallResult(
        id=receipt.call_id,
        model=model,
        kind=receipt.kind,
        artifacts=list(receipt.artifacts),
        output=msgspec.Raw(output or b"{}"),  # type: ignore[arg-type]  # the bytes that came, as they are
        degraded=receipt.degraded,
        requested_profile=receipt.requested_profile or None,
        actual_profile=receipt.actual_profile or None,
        dropped_inputs=list(receipt.dropped_inputs),
        cached=receipt.cached,
        usage=usage,
    )
