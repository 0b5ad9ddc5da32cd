"""The tools that make media, as processes of their own."""

import asyncio
import sys

import pytest

from services.studio.media.ffmpeg import RenderError, finished, run


async def tool(code: str) -> asyncio.subprocess.Process:
    """A process that runs `code`."""
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )


async def cancelled_at_once(process: asyncio.subprocess.Process) -> bool:
    """Whether waiting for the process, cancelled as soon as it has begun, ends as cancelled."""
    waiting = asyncio.create_task(finished(process))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    return waiting.cancelled()


async def test_a_cancelled_call_kills_its_tool():
    """No tool outlives the call that started it."""
    process = await tool("import time; time.sleep(600)")
    assert await cancelled_at_once(process)
    assert process.returncode == -9


async def test_a_cancellation_that_comes_after_the_end_is_still_one():
    """A tool that ended at the same moment cannot be killed; the task is cancelled for that, not failed."""
    process = await tool("")
    await process.communicate()
    assert await cancelled_at_once(process)
    assert process.returncode == 0


async def test_a_tool_that_fails_says_why():
    """The last words of the tool, or its exit code where it had none."""
    with pytest.raises(RenderError, match="no such pen"):
        await run(["-c", "raise SystemExit('no such pen')"], sys.executable)
    with pytest.raises(RenderError, match="exit code 3"):
        await run(["-c", "raise SystemExit(3)"], sys.executable)
