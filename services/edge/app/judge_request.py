"""Judge what a request of the public gRPC port brings, as the HTTP routes judge what theirs bring (AUTH-1, AUTH-4).

Nothing is created here: the context that owns the method does that, with what was made of the request. A known
idempotency key is not judged again, as over HTTP: a signed URL may have expired since (IDEM-1).
"""

from typing import Any

from libs.faults.fault import Fault
from services.edge.app.authenticate import Caller
from services.edge.app.create_run import CreateRun
from services.edge.app.make_call import MakeCall
from services.edge.app.take_materials import TakeMaterials
from services.edge.domain import calls
from services.edge.domain.json_values import Reader, check_values
from services.edge.domain.orders import Order, materials_within
from services.edge.ports import Runs


class JudgeRequest:
    """The use-case with what it needs."""

    def __init__(self, runs: Runs, create: CreateRun, make: MakeCall, take_materials: TakeMaterials) -> None:
        self._runs = runs
        self._create = create
        self._make = make
        self._take_materials = take_materials

    async def known(self, tenant: str, key: str, fingerprint: str) -> bool:
        """Whether the key has made a Run already. Fault idempotency_conflict: it came with another order."""
        return bool(key) and await self._runs.replay(tenant, key, fingerprint) is not None

    async def order(self, caller: Caller, body: dict[str, Any]) -> Order:
        """The order in the words of `POST /v1/runs`, with its materials taken in."""
        return await self._create.judged(caller, body)

    async def brought(self, caller: Caller, value: dict[str, Any], root: str) -> dict[str, Any]:
        """What a command brings at `root`, with its materials taken in."""
        check_values(value)
        errors: list[tuple[str, str]] = []
        materials = tuple(materials_within(value, root, errors))
        if errors:
            raise Fault.invalid(*errors)
        return await self._take_materials(caller, value, materials, root) if materials else value

    async def call(self, caller: Caller, model: str, kind: str, given: bytes) -> bytes:
        """The input of a call, with its materials taken in."""
        fields = calls.input_fields(given)
        order = calls.order(Reader({"model": model}), kind, fields, calls.CallOptions())
        return (await self._make.prepared(caller, order)).input
