"""Synchronous calls as the edge sees them: real stubs, real wire, scripted outputs."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from google.type.money_pb2 import Money

from libs.faults.failures import failure_to_proto
from libs.faults.fault import Fault
from pointsman.common.v1 import artifact_pb2, usage_pb2
from pointsman.routing.v1 import call_list_pb2, call_pb2, task_pb2
from pointsman.routing.v1 import routing_service_pb2 as pb
from pointsman.routing.v1.routing_service_pb2_grpc import RoutingServiceServicer
from tests.contract.edge.values import at

USAGE = usage_pb2.Usage(input_tokens=9, cached_input_tokens=4, output_tokens=3, reasoning_tokens=1)
ANSWER = {
    "id": "upstream-7",
    "object": "chat.completion",
    "created": 1,
    "model": "upstream-model",
    "provider_secret": "x",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Good day."}, "finish_reason": "stop"}],
}
OUTPUTS: dict[str, Any] = {
    "chat": ANSWER,
    "embedding": {"data": [{"index": 0, "embedding": [0.5, -0.25]}, {"index": 1, "embedding": [1.0, 0.0]}]},
    "image": {"data": [{"revised_prompt": "a calm lake"}]},
    "speech": {},
    "ocr": {"text": "NEMO", "blocks": [{"text": "NEMO", "box": [1, 2, 30, 9], "confidence": 0.9, "kind": "line"}]},
}


def piece(text: str, **more: Any) -> bytes:
    """One chunk of a completion as a provider spells it."""
    choices = [{"index": 0, "delta": {"content": text}, "finish_reason": None}]
    chunk = {"id": "upstream-7", "model": "upstream-model", "choices": choices, **more}
    return json.dumps(chunk, indent=1).encode()  # some providers send line breaks inside their JSON


class FakeCalls(RoutingServiceServicer):
    """Serves what it was told to; `asked` keeps the requests, `given_up` the ids of calls that their caller left."""

    def __init__(self) -> None:
        self.asked: list[pb.InvokeRequest] = []
        self.given_up: list[str] = []
        self.outputs = {kind: json.dumps(value).encode() for kind, value in OUTPUTS.items()}
        self.pieces = [piece("Good"), piece(" day.")]
        self.artifacts: list[artifact_pb2.Artifact] = []
        self.changes: dict[str, Any] = {}
        """Fields of the call that ends."""
        self.fault: Fault | None = None
        self.cut: Fault | None = None
        """What a stream ends with after its pieces."""
        self.gate = asyncio.Event()
        """Calls wait here before they answer, streams after their first piece; open unless a test closes it."""
        self.gate.set()
        self.begun = asyncio.Event()
        self.at_once = False
        self.calls: dict[str, call_pb2.Call] = {}

    def ended(self, request: pb.InvokeRequest) -> call_pb2.Call:
        """The call as it ends."""
        given = {"supply_id": "ark-main/chat", "usage": USAGE, "cost": Money(currency_code="USD", nanos=1_200_000)}
        given |= {"artifacts": self.artifacts, "attempts": [an_attempt()]} | self.changes
        call = call_pb2.Call(
            id=request.call_id,
            tenant=request.tenant,
            model=request.model,
            kind=request.kind or "chat",
            state=call_pb2.CALL_STATE_SUCCEEDED,
            create_time=at(1),
            finish_time=at(2),
            **given,
        )
        call.times.wall.FromMilliseconds(500)
        call.times.productive.FromMilliseconds(400)
        call.times.overhead.FromMicroseconds(1500)
        self.calls[call.id] = call
        return call

    async def Invoke(self, request: Any, context: Any) -> Any:
        """The output of the kind, or the fault."""
        self.asked.append(request)
        self.begun.set()
        await self._pass(request)
        if self.fault is not None:
            raise self.fault
        return pb.InvokeResponse(output=self.outputs[request.kind or "chat"], call=self.ended(request))

    async def InvokeStream(self, request: Any, context: Any) -> AsyncIterator[Any]:
        """The pieces, then the call, or the fault before or after them."""
        inner = request.request
        self.asked.append(inner)
        if self.fault is not None:
            raise self.fault
        if self.at_once and request.together:
            yield pb.InvokeStreamResponse(chunks=self.pieces)
            yield pb.InvokeStreamResponse(call=self.ended(inner))
            return
        for number, chunk in enumerate(self.pieces):
            yield pb.InvokeStreamResponse(chunk=chunk)
            self.begun.set()
            if number == 0:
                await self._pass(inner)
        if self.cut is not None:
            raise self.cut
        yield pb.InvokeStreamResponse(call=self.ended(inner))

    async def _pass(self, request: pb.InvokeRequest) -> None:
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.given_up.append(request.call_id)
            self.gate.set()
            raise

    def call_of(self, request: Any) -> call_pb2.Call:
        """The call that a request of a tenant names."""
        call = self.calls.get(request.call_id)
        if call is None or request.tenant not in ("", call.tenant):
            raise Fault.of("not_found", f"call {request.call_id!r} does not exist")
        return call

    async def GetCall(self, request: Any, context: Any) -> Any:
        """By id, with one round."""
        call = self.call_of(request)
        chosen = task_pb2.CandidateFate(supply_id="ark-main/chat", tier="exact", fate="chosen", rank=1)
        round_ = task_pb2.Selection(
            round=1, tier="exact", policy_id="p", policy_revision=1, candidates=[chosen],
            chosen_supply_id="ark-main/chat", steps=["1", "2", "3", "4"],
        )  # fmt: skip
        told = call_pb2.Call()
        told.CopyFrom(call)
        told.selections.append(round_)
        return pb.GetCallResponse(call=told)

    async def ListCalls(self, request: Any, context: Any) -> Any:
        """Those that have ended, the newest first; a token is the id of the last one before."""
        fits = [
            call
            for call_id, call in sorted(self.calls.items(), reverse=True)
            if request.tenant in ("", call.tenant)
            and request.model in ("", call.model)
            and request.session_id in ("", call.session_id)
            and (not request.states or call.state in request.states)
            and (not request.page_token or call_id < request.page_token)
            and _within(request, call)
        ]
        page = fits[: request.page_size]
        return call_list_pb2.ListCallsResponse(calls=page, next_page_token=page[-1].id if len(fits) > len(page) else "")


def _within(request: Any, call: call_pb2.Call) -> bool:
    ended = call.finish_time.seconds
    since, until = (
        getattr(request, name).seconds if request.HasField(name) else None for name in ("since_time", "until_time")
    )
    return (since is None or ended >= since) and (until is None or ended < until)


def an_attempt() -> call_pb2.CallAttempt:
    """One that failed."""
    attempt = call_pb2.CallAttempt(
        id="a1",
        number=1,
        supply_id="ark-main/chat",
        channel_id="ark-main",
        state="failed",
        failure=failure_to_proto(Fault.of("rate_limited", "429 from ark-main")),
        quote=Money(currency_code="USD", nanos=2_000_000),
        send_time=at(1),
        reserved_tokens=120,
        usage=USAGE,
        selection_round=1,
    )
    attempt.latency.FromMilliseconds(400)
    attempt.time_to_first_token.FromMilliseconds(90)
    return attempt
