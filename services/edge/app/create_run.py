"""Take an order: recognise a repeated one, check it, take in its materials, hand it to runs.

A known Idempotency-Key is answered before anything else is looked at (IDEM-1): its conflict wins over every other fault
of the body. The fingerprint is the hash of the body as it came, so media in it count too. Of those who come at once
with one key, one does the work and the others wait for what it makes.
"""

from dataclasses import replace
from typing import Any

from libs.faults.fault import Fault
from libs.kernel.canonical import digest
from libs.kernel.world import World
from services.edge.app.authenticate import Caller
from services.edge.app.keyed_turns import KeyedTurns
from services.edge.app.take_materials import TakeMaterials
from services.edge.domain import shapes
from services.edge.domain.json_values import check_values
from services.edge.domain.orders import PRODUCTION, Order, read_order, with_stand_ins
from services.edge.domain.together import together
from services.edge.ports import Runs

ROUTE = "POST /v1/runs"


class CreateRun:
    """The use-case with what it needs."""

    def __init__(self, runs: Runs, take_materials: TakeMaterials, turns: KeyedTurns, world: World) -> None:
        self._runs = runs
        self._take_materials = take_materials
        self._turns = turns
        self._world = world

    async def __call__(self, caller: Caller, body: Any, key: str) -> tuple[shapes.Run, bool]:
        """(the Run, whether the key named an earlier one)."""
        if not key:
            return await self._created(caller, body, "", "")
        fingerprint = digest({"route": ROUTE, "body": body})
        async with self._turns.of((caller.tenant, ROUTE, key)):
            earlier = await self._runs.replay(caller.tenant, key, fingerprint)
            return (earlier, True) if earlier is not None else await self._created(caller, body, key, fingerprint)

    async def _created(self, caller: Caller, body: Any, key: str, fingerprint: str) -> tuple[shapes.Run, bool]:
        order = await self.judged(caller, body)
        deadline = order.deadline(self._world.clock.now())
        return await self._runs.create(caller.tenant, order, deadline, key, fingerprint)

    async def judged(self, caller: Caller, body: Any) -> Order:
        """The order in a body, with its materials taken in; a Fault names everything that is wrong with it."""
        check_values(body)
        order = read_order(body)
        if order.production is not None:
            document = await self._document(caller, order, order.production)
            return replace(order, production=document, materials=())
        await self._refuse_callback(order)
        given = await self._take_materials(caller, order.input, order.materials)
        return replace(order, input=given, materials=())

    async def _document(self, caller: Caller, order: Order, production: dict[str, Any]) -> dict[str, Any]:
        """The production with its materials taken in. What is wrong with either is told with what runs finds wrong
        with the rest, in one answer (RUN-3); while runs is away, without."""
        faults = [Fault.invalid(*order.wrong)] if order.wrong else []
        document = production
        try:
            await self._refuse_callback(order)
        except Fault as fault:
            faults.append(_naming(fault))
        try:
            document = await self._take_materials(caller, production, order.materials, PRODUCTION)
        except Fault as fault:
            faults.append(_naming(fault))
        if not faults:
            return document
        try:
            await self._runs.check(caller.tenant, Order("", {}, production=with_stand_ins(production)))
        except Fault as fault:
            faults += [fault] if fault.errors else []
        raise together(faults)

    async def _refuse_callback(self, order: Order) -> None:
        if order.callback_url:
            await self._take_materials.refuse_urls([("/callback_url", order.callback_url)])


def _naming(fault: Fault) -> Fault:
    """The fault if it names fields; any other is passed on."""
    if not fault.errors:
        raise fault
    return fault
