"""Make a synchronous call: its materials are judged and kept, routing serves it, the caller may read what it gave."""

from collections.abc import AsyncGenerator

from msgspec.structs import replace

from libs.faults.fault import Fault
from services.edge.app.authenticate import Caller
from services.edge.app.reveal import Reveal
from services.edge.app.take_materials import TakeMaterials
from services.edge.domain.calls import CallOrder, Receipt, Served, encode
from services.edge.domain.json_values import value_of
from services.edge.ports import Calls

INPUT_LIMIT_BYTES = 48 * 1024 * 1024
"""Between contexts a message has at most 64 MiB, and it carries more than the input."""


class MakeCall:
    """The use-case with what it needs."""

    def __init__(self, calls: Calls, take_materials: TakeMaterials, reveal: Reveal) -> None:
        self._calls = calls
        self._take_materials = take_materials
        self._reveal = reveal

    async def __call__(self, caller: Caller, call_id: str, order: CallOrder) -> Served:
        """What it gave, with its receipt."""
        ready = await self.prepared(caller, order)
        served = await self._calls.invoke(caller.tenant, call_id, ready)
        if served.receipt.artifacts:
            await self._reveal.grant(caller.tenant, [artifact.sha256 for artifact in served.receipt.artifacts])
        return served

    async def stream(
        self, caller: Caller, call_id: str, order: CallOrder
    ) -> AsyncGenerator[list[bytes] | Receipt, None]:
        """The pieces of a streamed call, for whoever reads them to close; nothing happens before the first is read."""
        return self._calls.stream(caller.tenant, call_id, await self.prepared(caller, order))

    async def prepared(self, caller: Caller, order: CallOrder) -> CallOrder:
        """The order with its materials taken in. Faults as `TakeMaterials`; payload_too_large."""
        if order.materials:
            kept = await self._take_materials(caller, value_of(order.input), order.materials)
            order = replace(order, input=encode(kept), materials=())
        if len(order.input) > INPUT_LIMIT_BYTES:
            raise Fault.of(
                "payload_too_large",
                f"the input has {len(order.input)} bytes, {INPUT_LIMIT_BYTES} are accepted;"
                " send files to /v1/artifacts, or name them by address",
            )
        return order
