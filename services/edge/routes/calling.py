"""What the routes of synchronous calls share: an id in every answer, a client that is watched, pointers that fit.

A client that leaves gives its call up: nobody else could ever read the answer, and what is not finished need not be
paid. The record of the call stays and says `abandoned`.
"""

from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import contextmanager

from libs.faults.fault import Fault
from libs.kernel.world import World
from services.edge.app.make_call import MakeCall
from services.edge.domain.call_headers import said_in
from services.edge.domain.calls import CallOrder, Fields, Receipt, Renamed, Served, place_of
from services.edge.routes.bodies import read_fields
from services.edge.routes.gate import CALL_ID
from services.edge.routes.operations import Asked
from services.edge.routes.presence import Presence

Pieces = AsyncGenerator[list[bytes] | Receipt, None]


class Calling:
    """The parts with what they need."""

    def __init__(self, make: MakeCall, world: World, body_limit_bytes: int) -> None:
        self._make = make
        self._world = world
        self._body_limit_bytes = body_limit_bytes

    async def fields(self, asked: Asked) -> tuple[Fields, Mapping[str, str]]:
        """(the top level of the body, our own headers)."""
        return await read_fields(asked.request, self._body_limit_bytes), said_in(asked.request.scope["headers"])

    def now_s(self) -> int:
        """Now, in seconds of Unix time, as OpenAI tells times."""
        return int(self._world.clock.now().timestamp())

    async def served(self, asked: Asked, order: CallOrder) -> Served | None:
        """What the call gave, None once the client has left."""
        call_id = self._begin(asked)
        with _readdressed(order.renamed):
            async with Presence(asked.request.scope, asked.request.receive):
                return await self._make(asked.caller, call_id, order)
        return None

    async def opened(self, asked: Asked, order: CallOrder) -> "tuple[list[bytes] | Receipt, Pieces] | None":
        """(the first pieces, all others), None once the client has left. Before the first one a fault is a problem."""
        call_id = self._begin(asked)
        with _readdressed(order.renamed):
            async with Presence(asked.request.scope, asked.request.receive):
                pieces = await self._make.stream(asked.caller, call_id, order)
                try:
                    return await anext(pieces), pieces
                except BaseException:
                    await pieces.aclose()
                    raise
        return None

    def _begin(self, asked: Asked) -> str:
        call_id = self._world.ids.ulid()
        asked.request.scope[CALL_ID] = call_id
        return call_id


def call_id_of(asked: Asked) -> str:
    """The id that the call was given."""
    return str(asked.request.scope[CALL_ID])


@contextmanager
def _readdressed(renamed: Renamed | None) -> Iterator[None]:
    """Faults of fields of the input point to where this route has them: routing points to `/input/…`."""
    try:
        yield
    except Fault as fault:
        if not fault.errors:
            raise
        raise _moved(fault, renamed) from fault


def _moved(fault: Fault, renamed: Renamed | None) -> Fault:
    fresh = Fault.invalid(*((place_of(error.pointer, renamed), error.reason) for error in fault.errors))
    spelt = Fault.invalid(*((error.pointer, error.reason) for error in fault.errors))
    message = fresh.message if fault.message == spelt.message else fault.message
    return fault.replaced(errors=fresh.errors, message=message)
