"""Which context may call which method (AUTH-3): a peer that is known is held to the table, a certificate to its names.

A peer is known by its certificate, where the port asks for one. In this process and over Unix sockets, which the
kernel keeps others away from, it is known by the name that it says; who says none is an operator at this machine.
"""

from collections.abc import Mapping

from libs.faults.fault import Fault
from libs.rpc.identity import CALLER
from libs.rpc.interceptors.incoming import IncomingCall
from libs.rpc.loopback_context import LoopbackContext
from libs.rpc.tls import Tls

NOBODY = frozenset[str]()


class CallersInterceptor:
    """Refuses with Fault `forbidden` what the table does not allow.

    `table`: path of a method -> the contexts that may call it; what is not there no context may call. `tls` reads
    certificates; None where no port asks for one.
    """

    def __init__(self, table: Mapping[str, frozenset[str]], tls: Tls | None = None) -> None:
        self._table = table
        self._contexts = frozenset[str]().union(*table.values())
        self._tls = tls

    def opened(self, call: IncomingCall) -> None:
        """Let the call pass, or say who may not call what."""
        said = call.metadata.get(CALLER, "")
        allowed = self._table.get(call.method.path, NOBODY)
        proved = None
        if self._tls is not None and type(call.context) is not LoopbackContext:
            proved = self._tls.certified(call.context.auth_context())
        if proved is not None:
            _hold(proved, said if said in self._contexts else "", allowed, call.method.path)
        elif said not in allowed and said in self._contexts:
            raise Fault.of("forbidden", f"{said} may not call {call.method.path}")

    def closed(self, call: IncomingCall) -> None:
        """Nothing: what was allowed is done."""


def _hold(proved: frozenset[str], said: str, allowed: frozenset[str], path: str) -> None:
    if said and said not in proved:
        raise Fault.of("forbidden", f"the caller says that it is {said!r}; its certificate is for {_listed(proved)}")
    if said not in allowed if said else not proved & allowed:
        raise Fault.of("forbidden", f"{said or _listed(proved)} may not call {path}")


def _listed(contexts: frozenset[str]) -> str:
    return " and ".join(sorted(contexts)) or "no context"
