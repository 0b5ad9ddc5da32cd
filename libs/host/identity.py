"""As whom PostgreSQL runs. It refuses to be root, so root needs another name for it.

Three ways, best first:
- an ordinary user runs it directly;
- root runs it in a user namespace of its own, where root looks like user 1000: no account is made, files stay root's,
  and a directory that only root may enter works;
- where user namespaces are forbidden (some containers), root hands the directory to `nobody`; then every folder on the
  way to the directory and to the binaries must be open to others.
"""

import os
import pwd
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CHILD = Path(__file__).with_name("child.py")
NAMESPACE = ("--user", "--map-user=1000", "--map-group=1000", "--")


@dataclass(frozen=True, slots=True)
class Identity:
    """How a child process is started: `prefix` goes before the command, `owner` is the (uid, gid) to change to."""

    name: str
    prefix: tuple[str, ...] = ()
    owner: tuple[int, int] | None = None

    @property
    def uid(self) -> int:
        """The user that must own the files, as seen from outside."""
        return self.owner[0] if self.owner else os.geteuid()

    def command(self, program: Path, arguments: Sequence[str], death_signal: signal.Signals) -> list[str]:
        """The full command line of a child that gets `death_signal` when this process dies."""
        owner = f"{self.owner[0]}:{self.owner[1]}" if self.owner else "-"
        child = [sys.executable, "-I", "-S", str(CHILD), str(os.getpid()), str(int(death_signal)), owner]
        return [*self.prefix, *child, str(program), *arguments]


def direct() -> Identity:
    """Run as the user that we are."""
    return Identity("direct")


def namespace() -> Identity | None:
    """Run in a user namespace, or None where that is not possible. Tries it for real: policies differ by machine."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return None
    trial = [unshare, *NAMESPACE, sys.executable, "-I", "-S", "-c", ""]
    done = subprocess.run(trial, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return Identity("namespace", prefix=(unshare, *NAMESPACE)) if done.returncode == 0 else None


def nobody() -> Identity:
    """Run as the account `nobody`, which every Unix has."""
    account = pwd.getpwnam("nobody")
    return Identity("nobody", owner=(account.pw_uid, account.pw_gid))


def best() -> Identity:
    """The best way open to this process. Blocks for some milliseconds when it is root."""
    if os.geteuid() != 0:
        return direct()
    return namespace() or nobody()


def first_closed_folder(path: Path) -> Path | None:
    """The first folder on the way to `path` that others may not pass, or None."""
    for folder in reversed(path.absolute().parents):
        if not folder.stat().st_mode & 0o001:
            return folder
    return None
