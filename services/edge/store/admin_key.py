"""The admin key's file, DATA/admin.key: made once, readable by its owner alone, the same over restarts."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

NAME = "admin.key"
MODE = 0o600


def read_or_make(directory: Path, make: Callable[[], str]) -> tuple[str, bool]:
    """(the key, whether it was made now). Of two processes that make it at once, one wins and both read that."""
    path = directory / NAME
    kept = _read(path)
    if kept:
        return kept, False
    directory.mkdir(parents=True, exist_ok=True)
    text = make()
    fresh = directory / f".{NAME}.{os.getpid()}"
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE)
    try:
        os.write(descriptor, f"{text}\n".encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    try:
        if path.exists():  # it was there and empty
            fresh.replace(path)
        else:
            os.link(fresh, path)
    except FileExistsError:
        return _read(path) or text, False
    finally:
        with contextlib.suppress(FileNotFoundError):
            fresh.unlink()
    return text, True


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""
