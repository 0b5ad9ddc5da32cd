"""Take an order: recognise a repeated one, check it, keep its materials, hand it to runs.

A known Idempotency-Key is answered before anything else is looked at (IDEM-1): its conflict wins over every other fault
of the body. The fingerprint is the hash of the body as it came, so media in it count too.
"""

from dataclasses import replace
from typing import Any

from libs.blobs.blob import Blobs
from libs.faults.fault import Fault
from libs.kernel.canonical import digest
from libs.kernel.world import World
from services.edge.app.authenticate import Caller
from services.edge.app.reveal import Reveal
from services.edge.domain import shapes
from services.edge.domain.json_values import check_values, pointer_to
from services.edge.domain.orders import Material, Order, read_order, with_artifacts
from services.edge.ports import Runs, UrlPolicy

ROUTE = "POST /v1/runs"


class CreateRun:
    """The use-case with what it needs."""

    def __init__(self, runs: Runs, reveal: Reveal, blobs: Blobs, urls: UrlPolicy, world: World) -> None:
        self._runs = runs
        self._reveal = reveal
        self._blobs = blobs
        self._urls = urls
        self._world = world

    async def __call__(self, caller: Caller, body: Any, key: str) -> tuple[shapes.Run, bool]:
        """(the Run, whether the key named an earlier one)."""
        fingerprint = digest({"route": ROUTE, "body": body}) if key else ""
        if key:
            earlier = await self._runs.replay(caller.tenant, key, fingerprint)
            if earlier is not None:
                return earlier, True
        check_values(body)
        order = read_order(body)
        await self._check_materials(caller, order)
        order = await self._keep_materials(caller, order)
        deadline = order.deadline(self._world.clock.now())
        return await self._runs.create(caller.tenant, order, deadline, key, fingerprint)

    async def _check_materials(self, caller: Caller, order: Order) -> None:
        errors = []
        for material in order.materials:
            if material.artifact and not await self._usable(caller, material.artifact):
                errors.append((pointer_to(material.pointer, "artifact"), "no such artifact"))
        if errors:
            raise Fault.invalid(*errors)
        urls = [(pointer_to(material.pointer, "url"), material.url) for material in order.materials if material.url]
        if order.callback_url:
            urls.append(("/callback_url", order.callback_url))
        refused = [(pointer, reason) for pointer, url in urls if (reason := await self._urls.refusal(url))]
        if refused:
            raise Fault.invalid(*refused, code="url_not_allowed")

    async def _usable(self, caller: Caller, artifact: str) -> bool:
        """Whether it is there for this caller. Operators may read everything, so for them it must be looked for."""
        try:
            return await self._reveal.may_read(caller, artifact) and bool(await self._blobs.stat(artifact))
        except Fault as fault:
            if fault.code == "not_found":
                return False
            raise

    async def _keep_materials(self, caller: Caller, order: Order) -> Order:
        """The order with its base64 materials kept as artifacts of the caller's tenant."""
        encoded = [(material, material.content()) for material in order.materials if material.base64]
        if not encoded:
            return order
        digests = {material.pointer: await self._keep(material, content) for material, content in encoded}
        await self._reveal.grant(caller.tenant, digests.values())
        return replace(order, input=with_artifacts(order.input, digests), materials=())

    async def _keep(self, material: Material, content: bytes) -> str:
        blob = await self._blobs.put(content, material.media_type)
        return blob.sha256
