"""Child processes of tests: started in a group of their own, killed with everything below them, orphans looked for.

A process that was reparented after its parent's death is no longer below anybody, so the tree is remembered before it
is cut, and every process is also marked by a variable in its environment.
"""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

MARK = "POINTSMAN_TEST_STACK"
ROOT = Path(__file__).resolve().parents[2]
OURS = ("POINTSMAN_", "PEER_", "LISTEN_", "ROUTING_", "OTEL_")


def environment(mark: str, more: Mapping[str, str]) -> dict[str, str]:
    """The caller's environment without any setting of the product, and with the mark."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    return {**kept, MARK: mark, **more}


def spawn(arguments: Sequence[str], env: Mapping[str, str], log: Path) -> "subprocess.Popen[bytes]":
    """Start a program in a process group of its own; what it says is appended to `log`."""
    with log.open("ab") as output:
        return subprocess.Popen(
            arguments,
            cwd=ROOT,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def tree(root: int) -> set[int]:
    """The process and everything below it, as the kernel sees it now."""
    parents = {pid: parent for pid in _pids() if (parent := _parent(pid)) is not None}
    found = {root} & parents.keys()
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def marked(mark: str) -> set[int]:
    """Live processes whose environment carries the mark."""
    wanted = f"{MARK}={mark}".encode()
    return {pid for pid in _pids() if wanted in _read(f"/proc/{pid}/environ").split(b"\0")}


def alive(pids: set[int]) -> set[int]:
    """Those of them that still run; a zombie does not."""
    return {pid for pid in pids if _parent(pid) is not None}


def send(pids: set[int], number: signal.Signals) -> None:
    """Signal processes that may be gone already."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def resident_bytes(pids: set[int]) -> int:
    """Resident memory, summed: pages that several share (a database's buffers) are counted for each."""
    return sum(_memory(pid, "status", b"VmRSS:") for pid in pids)


def own_bytes(pids: set[int]) -> int:
    """Resident memory with each shared page counted once over all its holders (PSS)."""
    return sum(_memory(pid, "smaps_rollup", b"Pss:") for pid in pids)


def cpu_seconds(pids: set[int]) -> float:
    """Processor time used so far, user and system."""
    ticks = 0
    for pid in pids:
        words = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
        ticks += int(words[11]) + int(words[12]) if len(words) > 12 else 0
    return ticks / os.sysconf("SC_CLK_TCK")


def program(pid: int) -> str:
    """The name of the program that a process runs."""
    return _read(f"/proc/{pid}/comm").decode(errors="replace").strip()


def _memory(pid: int, file: str, field: bytes) -> int:
    for line in _read(f"/proc/{pid}/{file}").splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    return 0


def _pids() -> list[int]:
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def _parent(pid: int) -> int | None:
    """Its parent's pid; None if it is gone or a zombie."""
    words = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return int(words[1]) if len(words) > 1 and words[0] not in (b"Z", b"X") else None


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""
