"""Waiting for another process: its progress has no event of ours, so the condition is polled under a deadline."""

import asyncio
import time
from collections.abc import Awaitable, Callable

POLL_S = 0.01


async def eventually(condition: Callable[[], object], within_s: float = 20.0) -> None:
    """Return as soon as `condition()` is true. AssertionError when that has not happened after `within_s` seconds."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"did not happen within {within_s:g} s"
        await asyncio.sleep(POLL_S)


async def eventually_async(condition: Callable[[], Awaitable[object]], within_s: float = 20.0) -> None:
    """Return as soon as `await condition()` is true. AssertionError when that has not happened after `within_s`."""
    deadline = time.monotonic() + within_s
    while not await condition():
        assert time.monotonic() < deadline, f"did not happen within {within_s:g} s"
        await asyncio.sleep(POLL_S)
