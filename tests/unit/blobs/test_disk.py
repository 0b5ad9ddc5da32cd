"""Blocking work in a thread, and a caller that goes away."""

import asyncio
import threading

import pytest

from libs.blobs.disk import on_disk
from libs.faults.fault import Fault


async def test_a_cancelled_caller_waits_for_the_thread() -> None:
    """The file under a running write is not closed behind its back: cancellation arrives after the thread is done."""
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        may_end.wait(10)
        ended.set()

    task = asyncio.create_task(on_disk(work))
    await asyncio.to_thread(begun.wait, 10)
    for _ in range(3):  # however often it is cancelled
        task.cancel()
        await asyncio.wait({task}, timeout=0.01)
        assert not task.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


async def test_a_disk_that_refuses() -> None:
    """An operating system's refusal becomes a Fault; a bug stays a bug."""

    def full() -> None:
        raise OSError(28, "No space left on device")

    def bug() -> None:
        raise KeyError("x")

    with pytest.raises(Fault, match="No space left"):
        await on_disk(full)
    with pytest.raises(KeyError):
        await on_disk(bug)
