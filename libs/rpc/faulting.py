"""From a failed call to a Fault, with the cause kept. For `peers/`: gRPC never passes that line.

async with faults_from_rpc():
    reply = await self._stub.Reserve(request, timeout=2.0)

@faulting
async def reserve(self, ...): ...          # or an async generator
"""

import functools
import inspect
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Any, TypeVar

import grpc

from libs.faults.fault import Fault
from libs.faults.wire import from_rpc_error
from libs.telemetry import metrics, names

F = TypeVar("F", bound=Callable[..., Any])


def fault_of(error: grpc.RpcError) -> Fault:
    """The Fault in a failed call, counted."""
    fault = from_rpc_error(error)
    metrics.PROCESS.counter(names.RPC_CLIENT_FAULTS, code=fault.code).inc()
    return fault


class faults_from_rpc:  # read as a statement: "async with faults_from_rpc()"
    """Turns an `AioRpcError` that leaves the block into its Fault. Cancellation and everything else pass through."""

    __slots__ = ()

    async def __aenter__(self) -> None:
        return None

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, grpc.RpcError):
            raise fault_of(error) from error


def faulting(function: F) -> F:
    """The decorator form, for coroutine functions and async generators."""
    if inspect.isasyncgenfunction(function):

        @functools.wraps(function)
        async def generator(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            with faults_from_rpc():
                async for item in function(*args, **kwargs):
                    yield item

        return generator  # type: ignore[return-value]  # the wrapper has the signature of what it wraps

    @functools.wraps(function)
    async def coroutine(*args: Any, **kwargs: Any) -> Any:
        with faults_from_rpc():
            return await function(*args, **kwargs)

    return coroutine  # type: ignore[return-value]  # the wrapper has the signature of what it wraps
