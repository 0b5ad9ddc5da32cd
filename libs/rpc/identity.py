"""Who calls, on whose behalf, and under which request id: carried by metadata from hop to hop.

The bearer key of a user is shown to the first servicer that it reaches and is never passed on: a context is trusted
for what it is, not for a key that it was shown.
"""

from contextvars import ContextVar
from types import TracebackType

from msgspec import Struct

AUTHORIZATION = "authorization"
CALLER = "x-pointsman-caller"
REQUEST_ID = "x-request-id"
TENANT = "x-pointsman-tenant"


class Identity(Struct, frozen=True):
    """The caller of the work in hand.

    `caller` is the name of a context ("routing"), "" for a client that is none of ours. `authorization` is the raw
    header of the incoming call, kept out of `repr` and never sent on.
    """

    caller: str = ""
    request_id: str = ""
    tenant: str = ""
    authorization: "Secret | None" = None

    def metadata(self, caller: str) -> tuple[tuple[str, str], ...]:
        """The metadata with which `caller` passes this identity on."""
        pairs = []
        if caller:
            pairs.append((CALLER, caller))
        if self.request_id:
            pairs.append((REQUEST_ID, self.request_id))
        if self.tenant:
            pairs.append((TENANT, self.tenant))
        return tuple(pairs)


class Secret:
    """A text that does not show itself."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself; for comparing, never for writing."""
        return self._text

    def __repr__(self) -> str:
        return "Secret(…)"


NOBODY = Identity()
_identity: ContextVar[Identity] = ContextVar("identity", default=NOBODY)


def current_identity() -> Identity:
    """The caller of the running task; `NOBODY` outside any call."""
    return _identity.get()


def carry_identity(identity: Identity) -> None:
    """Let the rest of the running task act for that caller."""
    _identity.set(identity)


class acting_for:  # read as a statement: "with acting_for(identity)"
    """Let the block act for that caller: the edge around a request, a tick around one task."""

    __slots__ = ("_given", "_token")

    def __init__(self, identity: Identity) -> None:
        self._given = identity

    def __enter__(self) -> None:
        self._token = _identity.set(self._given)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _identity.reset(self._token)
