"""Blocking file work off the loop, without ever leaving a thread at work on a file that is closed behind its back."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from libs.faults.fault import Fault

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


async def on_disk(work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
    """Run blocking file work in a thread. A disk that refuses (full, broken) is Fault `governance_backend_down`.

    A cancellation is passed on only after the thread has finished: a descriptor closed under a running write may by
    then be the number of another file.
    """
    task = asyncio.ensure_future(asyncio.to_thread(work, *args, **kwargs))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError:
                continue
        if not task.cancelled():
            task.exception()  # looked at, so that the loop does not report it as forgotten
        raise
    except OSError as error:
        raise Fault.of("governance_backend_down", f"the store of blobs refuses: {error.strerror or error}") from error
