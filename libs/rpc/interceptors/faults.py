"""The outermost interceptor: the only code that ends an RPC with an error.

Guards against two habits of gRPC for Python: the text of an unhandled exception is sent to the client, and a handler's
own CancelledError sends nothing at all (a client without a deadline waits for ever).
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

import grpc
from grpc import aio
from grpc_status import rpc_status

from libs.faults import wire
from libs.faults.fault import Fault
from libs.rpc.interceptors.incoming import IncomingCall

_log = logging.getLogger(__name__)


class FaultsInterceptor:
    """Turns what a handler raises into a status.

    `new_reference` names one failure in the log and in the answer; `stopped` tells the tasks that the server itself
    has cancelled in order to end. `brief`: strangers call, who take no more of a status than any client of gRPC.
    """

    def __init__(
        self,
        new_reference: Callable[[], str],
        stopped: Callable[[asyncio.Task[object]], bool],
        brief: bool = False,
    ) -> None:
        self._new_reference = new_reference
        self._stopped = stopped
        self._brief = brief

    async def end(self, call: IncomingCall, error: BaseException) -> NoReturn:
        """End the call with what `error` means, and raise."""
        if isinstance(error, Fault):
            await self._abort(call, error)
        if isinstance(error, aio.AbortError):
            code = call.context.code()
            call.outcome = code.name.lower() if isinstance(code, grpc.StatusCode) else "aborted"
            raise error
        if isinstance(error, asyncio.CancelledError):
            await self._cancelled(call, error)
        if not isinstance(error, Exception):
            call.outcome = "cancelled"
            raise error
        reference = self._new_reference()
        _log.error(
            "unhandled exception in %s, reference %s",
            call.method.path,
            reference,
            exc_info=error,
            extra={"rpc_method": call.method.path, "reference": reference},
        )
        await self._abort(call, Fault.of("internal", f"reference {reference}", metadata={"reference": reference}))

    async def _cancelled(self, call: IncomingCall, error: asyncio.CancelledError) -> NoReturn:
        task = asyncio.current_task()
        if task is not None and self._stopped(task):
            await self._abort(call, Fault.of("peer_unavailable", "the server is stopping"))
        if task is None or task.cancelling():
            # Asked for from outside: the client has left, its deadline has passed, or the transport ends. Or the
            # handler has cancelled its own task; gRPC does not let us tell, so the status is sent in any case.
            with suppress(Exception):
                await self._abort(call, Fault.of("cancelled", "the work behind this call was cancelled"))
            call.outcome = "cancelled"
            raise error
        _log.warning("%s ended by a cancellation of its own", call.method.path, extra={"rpc_method": call.method.path})
        await self._abort(call, Fault.of("cancelled", "the work behind this call was cancelled"))

    async def _abort(self, call: IncomingCall, fault: Fault) -> NoReturn:
        call.outcome = fault.code
        await call.context.abort_with_status(rpc_status.to_status(wire.to_status(fault, brief=self._brief)))
        raise AssertionError("abort returned")  # abort always raises; this line is for the type checker
