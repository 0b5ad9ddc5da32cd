"""What an operation is: one method of one path, with everything that the gate and the OpenAPI document need."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from services.edge.app.authenticate import Caller
from services.edge.domain.keys import Scope
from services.edge.domain.open_limits import Hold

JSON = "application/json"
ANY = "*/*"
YAML = "application/yaml"
# People send a catalogue file with whatever their tool says by default; JSON is YAML too.
YAML_TYPES = frozenset(
    "application/yaml application/x-yaml text/yaml text/x-yaml text/plain application/json application/octet-stream"
    " application/x-www-form-urlencoded".split()
)
USERS = frozenset({Scope.RUNS})
INVOKERS = frozenset({Scope.RUNS, Scope.INVOKE})
CALLERS = frozenset({Scope.INVOKE})
READERS = frozenset({Scope.RUNS, Scope.INVOKE, Scope.OPERATE, Scope.ADMIN})
OPERATORS = frozenset({Scope.OPERATE, Scope.ADMIN})
ADMINS = frozenset({Scope.ADMIN})

Handler = Callable[["Asked"], Awaitable[Response]]


class Asked(Struct, frozen=True):
    """A request that has passed the gate. `caller` is None where no key is needed."""

    request: Request
    request_id: str
    known: Caller | None
    operation: "Operation"

    @property
    def caller(self) -> Caller:
        """Who asks; only operations that need a key have one."""
        assert self.known is not None, "this operation takes no key"
        return self.known

    @property
    def tenant(self) -> str:
        """The caller's tenant."""
        return self.caller.tenant

    def path(self, name: str) -> str:
        """A part of the path."""
        return str(self.request.path_params[name])

    def query(self, name: str) -> str | None:
        """A value of the query string; only of a parameter that the operation names."""
        assert name in self.operation.queried, f"{self.operation.name} names no parameter {name}"
        value: str | None = self.request.query_params.get(name)
        return value

    def every(self, name: str) -> list[str]:
        """All values of a parameter that may be given more than once."""
        assert self.operation.queried.get(name), f"{self.operation.name} names no parameter {name} that repeats"
        return list(self.request.query_params.getlist(name))


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the query string or a header. `repeats`: it may be given more than once."""

    name: str
    tells: str
    schema: dict[str, Any] = field(default_factory=lambda: {"type": "string"})
    where: str = "query"
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path. `scopes` are those of which one suffices; none at all means that no key is needed.

    `answer` is the shape of a success, `media` its type where it is no JSON. `takes` is the schema of a JSON body, or
    None; `types` the media types of any other body. `codes` are the faults that callers should expect. A success may
    come as `also_media` too. A query string may hold what `parameters` name, and nothing else. `holds` is what a
    request has open at length; one with a body holds that otherwise.
    """

    name: str
    method: str
    path: str
    handle: Handler
    tells: str
    scopes: frozenset[Scope] = frozenset()
    status: int = 200
    answer: type | None = None
    media: str = JSON
    takes: dict[str, Any] | None = None
    types: frozenset[str] = frozenset()
    parameters: tuple[Parameter, ...] = ()
    codes: tuple[str, ...] = ()
    also: tuple[int, ...] = ()
    also_media: str = ""
    head: bool = True
    holds: Hold | None = None

    @property
    def queried(self) -> Mapping[str, bool]:
        """The names that a query string may hold -> whether they repeat."""
        return {parameter.name: parameter.repeats for parameter in self.parameters if parameter.where == "query"}

    @property
    def held(self) -> Hold | None:
        """What a request takes of its tenant's places; an operator's work takes none."""
        if not self.counts:
            return None
        return self.holds or (Hold.BODY if self.types else None)

    @property
    def counts(self) -> bool:
        """Whether a request is one of its tenant's quota: an operator's work never is."""
        return bool(self.scopes & INVOKERS)


def plain(path: str) -> str:
    """The path as it stands in documents: `{id:path}` reads `{id}`."""
    return path.replace(":path}", "}")


TEXT = {"type": "string"}
REASON = {"type": "string", "maxLength": 1024}
REASON_SCHEMA: dict[str, Any] = {"type": "object", "additionalProperties": False, "properties": {"reason": REASON}}
"""Of a command that takes a reason and nothing else."""
PAGING = (
    Parameter("page_size", "At most this many.", {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}),
    Parameter("page_token", "`next_page_token` of the page before."),
)
