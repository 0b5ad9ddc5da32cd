"""The mark of a database's life in a file of the data directory, beside the database and not in it."""

import json
import logging
import os
from datetime import datetime
from pathlib import Path

from services.routing.domain.doubt import Life

log = logging.getLogger(__name__)


class LifeFile:
    """Implements `ports.restoring.Mark`. Several processes may share a directory: a mark never goes back."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> Life | None:
        """See the port."""
        try:
            told = json.loads(self._path.read_text(encoding="utf-8"))
            return Life(str(told["database"]), int(told["beat"]), datetime.fromisoformat(told["at"]))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.warning("%s tells nothing of the database's life: %s", self._path, error)
            return None

    def write(self, life: Life) -> None:
        """See the port."""
        known = self.read()
        if known is not None and known.database == life.database and known.beat >= life.beat:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        part = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        told = {"database": life.database, "beat": life.beat, "at": life.at.isoformat()}
        with part.open("w", encoding="utf-8") as file:
            file.write(json.dumps(told))
            file.flush()
            os.fsync(file.fileno())
        part.replace(self._path)


class NoMark:
    """Where no directory is kept: only people notice."""

    def read(self) -> Life | None:
        """See the port."""
        return None

    def write(self, life: Life) -> None:
        """See the port."""
