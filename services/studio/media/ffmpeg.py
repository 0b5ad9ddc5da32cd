"""Runs the bundled ffmpeg."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cache

import imageio_ffmpeg


class RenderError(Exception):
    """A tool could not make the media; the text is the end of what it said."""


@cache
def executable() -> str:
    """Path of the ffmpeg binary that ships with imageio-ffmpeg."""
    path: str = imageio_ffmpeg.get_ffmpeg_exe()
    return path


async def run(arguments: Sequence[str], tool: str | None = None) -> bytes:
    """Runs ffmpeg (or `tool`) and gives its standard output. Raises RenderError. A cancelled call kills it."""
    command = [tool, *arguments] if tool else [executable(), "-nostdin", "-v", "error", "-y", *arguments]
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await finished(process)
    if process.returncode != 0:
        raise RenderError(errors.decode(errors="replace")[-400:] or f"exit code {process.returncode}")
    return output


async def finished(process: asyncio.subprocess.Process) -> tuple[bytes, bytes]:
    """Standard output and standard error, as far as they are pipes, of a process once it has ended. A cancelled call
    kills it, unless it ended meanwhile: a cancellation that comes late stays a cancellation."""
    try:
        return await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
