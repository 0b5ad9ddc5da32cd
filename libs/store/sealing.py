"""Secrets at rest: what a database, a dump or a replica shows of them is sealed (Fernet: AES-128-CBC and HMAC-SHA256).

The key is not in the database: `POINTSMAN_SECRETS_KEY`, or a file that is made in the data directory and that its owner
alone may read. Several keys with commas between them: the first seals, all of them open, so a key is changed by putting
a new one in front.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from libs.faults.fault import Fault

NAME = "secrets.key"


class Seal:
    """Seals and opens texts. The keys are read when they are first needed."""

    def __init__(self, read: Callable[[], str]) -> None:
        self._read = read
        self._made: MultiFernet | None = None

    def closed(self, text: str) -> str:
        """The text, sealed by the newest key."""
        return self._keys.encrypt(text.encode()).decode()

    def opened(self, sealed: str) -> str:
        """The text. Fault internal if no key of ours has sealed it."""
        try:
            return self._keys.decrypt(sealed.encode()).decode()
        except InvalidToken:
            told = "a secret at rest was sealed by another key; is POINTSMAN_SECRETS_KEY the same in all processes?"
            raise Fault.of("internal", told) from None

    @property
    def _keys(self) -> MultiFernet:
        if self._made is None:
            self._made = _keys_in(self._read())
        return self._made


def check_keys(keys: str) -> None:
    """ValueError for a text that is no list of keys; an empty one says nothing."""
    if keys:
        _keys_in(keys)


def _keys_in(keys: str) -> MultiFernet:
    try:
        return MultiFernet([Fernet(key.strip()) for key in keys.split(",") if key.strip()])
    except ValueError:
        raise ValueError("POINTSMAN_SECRETS_KEY is no list of keys; a key is 32 bytes in URL-safe base64") from None


def file_key(directory: Path) -> Callable[[], str]:
    """Reads the key of a data directory when it is needed, and makes it where there is none."""

    def read() -> str:
        path = directory / NAME
        with suppress(FileNotFoundError):
            return path.read_text(encoding="ascii").strip()
        directory.mkdir(parents=True, exist_ok=True)
        fresh = directory / f".{NAME}.{os.getpid()}"
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(Fernet.generate_key() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            with suppress(FileExistsError):  # of two processes one wins, and both read that
                os.link(fresh, path)
        finally:
            fresh.unlink()
        return path.read_text(encoding="ascii").strip()

    return read
