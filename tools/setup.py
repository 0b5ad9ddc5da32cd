"""Make the environment of this checkout: `.venv`, exactly as uv.lock says.

Needs a Python 3.11 or newer and nothing else; runs on the standard library alone. Laws:

- Idempotent and quick: a stamp in the environment holds the digest of what it was made from; equal digest, no work.
- Safe to kill at any moment: an unfinished environment carries a mark and is made anew the next time.
- One at a time: a second run waits for the first.
- Compiled at once: a stack is up to nine processes, and each would compile the same packages for itself wherever
  Python may not keep bytecode (PYTHONDONTWRITEBYTECODE, as in many container images).
- Never touches the Python of the system, so a distribution that forbids `pip install` (PEP 668) is no obstacle.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

UV_VERSION = "0.13.9"
ROOT = Path(__file__).resolve().parent.parent
UV_HOME = ROOT / ".uv"
VENV = ROOT / ".venv"
STAMP = VENV / ".made-from"
UNFINISHED = ROOT / ".uv" / "unfinished"
INPUTS = ("pyproject.toml", "uv.lock", "tools/setup.py")


def fingerprint() -> str:
    """Digest of everything the environment is made from, the interpreter and the place of the checkout included."""
    digest = hashlib.sha256(f"{sys.version_info[:3]} {ROOT}".encode())
    for name in INPUTS:
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def up_to_date(wanted: str) -> bool:
    """Whether `.venv` is finished and was made from what the tree holds now."""
    if UNFINISHED.exists() or not (VENV / "bin" / "python").exists():
        return False
    try:
        return STAMP.read_text() == wanted
    except FileNotFoundError:
        return False


def run(command: list[str], **env: str) -> None:
    """Run one step, and end with its exit code if it fails."""
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **env})
    if done.returncode:
        print(f"setup: this step failed: {' '.join(command)}", file=sys.stderr)
        raise SystemExit(done.returncode)


def uv() -> list[str]:
    """The command that starts the pinned uv; installs it beside the checkout when it is not there."""
    marker = UV_HOME / f"uv-{UV_VERSION}"
    if not marker.exists():
        for old in UV_HOME.glob("*"):
            if old.name not in ("lock", "unfinished"):
                shutil.rmtree(old) if old.is_dir() and not old.is_symlink() else old.unlink()
        print(f"setup: fetching uv {UV_VERSION}", file=sys.stderr)
        made = subprocess.run([sys.executable, "-m", "venv", str(UV_HOME)], stdout=subprocess.DEVNULL)
        if made.returncode:
            print(
                "setup: this Python cannot make virtual environments. Install its venv module "
                "(Debian, Ubuntu: apt install python3-venv) and run `make setup` again.",
                file=sys.stderr,
            )
            raise SystemExit(1)
        run([str(UV_HOME / "bin" / "python"), "-m", "pip", "install", "--quiet", f"uv=={UV_VERSION}"])
        marker.touch()
    return [str(UV_HOME / "bin" / "uv")]


def make(wanted: str) -> None:
    """Bring `.venv` to what uv.lock says; the mark stands while it is not."""
    command = uv()
    if UNFINISHED.exists():
        print("setup: an earlier setup was cut short; making the environment anew", file=sys.stderr)
        shutil.rmtree(VENV, ignore_errors=True)
    UNFINISHED.touch()
    # A virtual environment of the caller, or a uv setting of theirs, must not redirect what is made here.
    run(
        [*command, "sync", "--frozen", "--compile-bytecode", "--python", sys.executable],
        UV_PROJECT_ENVIRONMENT=str(VENV),
        UV_PYTHON_DOWNLOADS="never",
        VIRTUAL_ENV="",
    )
    STAMP.write_text(wanted)
    UNFINISHED.unlink()


def main() -> int:
    """Make the environment unless it is up to date; the exit code is that of the step that failed."""
    if sys.version_info < (3, 11):  # noqa: UP036 - this file is what tells the owner of an older Python
        print(f"setup: needs Python 3.11 or newer, this is {sys.version.split()[0]}", file=sys.stderr)
        return 1
    wanted = fingerprint()
    if up_to_date(wanted):
        return 0
    UV_HOME.mkdir(exist_ok=True)
    with open(UV_HOME / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not up_to_date(wanted):
            make(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
