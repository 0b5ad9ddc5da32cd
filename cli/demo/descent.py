"""A process and everything below it, as the operating system sees them now: what `kill -9` of a whole stack means."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

PROC = Path("/proc")
ZOMBIE = "Z"


async def descent(root: int) -> set[int]:
    """The process and all its descendants."""
    parents = {pid: parent for pid, parent, _ in await _processes()}
    found = {root} & parents.keys()
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


async def still_there(pids: Iterable[int]) -> set[int]:
    """Those that still run; what is dead and not yet collected does not."""
    running = {pid for pid, _, state in await _processes() if not state.startswith(ZOMBIE)}
    return set(pids) & running


async def _processes() -> list[tuple[int, int, str]]:
    """(pid, parent, state) of every process."""
    if (PROC / "self" / "stat").exists():
        return _of_the_kernel()
    asked = ("ps", "-A", "-o", "pid=,ppid=,state=")
    process = await asyncio.create_subprocess_exec(*asked, stdout=asyncio.subprocess.PIPE)
    told, _ = await process.communicate()
    lines = (line.split() for line in told.decode().splitlines())
    return [(int(pid), int(parent), state) for pid, parent, state, *_ in lines]


def _of_the_kernel() -> list[tuple[int, int, str]]:
    found = []
    for folder in PROC.iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            stat = (folder / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:  # it ended meanwhile
            continue
        state, parent, *_ = stat.rpartition(")")[2].split()
        found.append((int(folder.name), int(parent), state))
    return found
