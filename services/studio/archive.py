"""What the studio must not forget: every POST it received, every job it accepted, every task and the files it made.

One SQLite file in write-ahead mode: a transaction that was committed survives a kill of the process. What is accepted
is committed before the caller hears of it, so the ledger never knows less than a caller could.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from services.studio.domain.jobs import ACTIVE, Task

PATIENCE_S = 2.0  # a studio that was just killed may need a moment to be gone
_SCHEMA = """
CREATE TABLE IF NOT EXISTS posts (
    id INTEGER PRIMARY KEY, at REAL NOT NULL, account TEXT NOT NULL, path TEXT NOT NULL, model TEXT NOT NULL,
    client_token TEXT NOT NULL, request_sha256 TEXT NOT NULL, fate TEXT NOT NULL DEFAULT 'open',
    status INTEGER NOT NULL DEFAULT 0, code TEXT NOT NULL DEFAULT '');
CREATE TABLE IF NOT EXISTS submissions (
    id TEXT PRIMARY KEY, post INTEGER NOT NULL, account TEXT NOT NULL, model TEXT NOT NULL, at REAL NOT NULL,
    kind TEXT NOT NULL, request_sha256 TEXT NOT NULL, client_token TEXT NOT NULL, safety_identifier TEXT NOT NULL,
    provider_task_id TEXT, status TEXT NOT NULL, currency TEXT NOT NULL, would_charge TEXT NOT NULL, charged TEXT,
    finished_at REAL, usage TEXT);
CREATE TABLE IF NOT EXISTS tasks (
    id TEXT PRIMARY KEY, account TEXT NOT NULL, model TEXT NOT NULL, status TEXT NOT NULL, created_at REAL NOT NULL,
    deleted INTEGER NOT NULL DEFAULT 0, record BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS tasks_by_account ON tasks (account, created_at);
"""


@dataclass(frozen=True, slots=True)
class Post:
    """One POST as it arrived, before anything was decided."""

    at: float
    account: str
    path: str
    model: str
    client_token: str
    request_sha256: str


@dataclass(frozen=True, slots=True)
class Submission:
    """One accepted job: what the account would charge if it succeeds. Amounts are decimal strings."""

    id: str
    post: int
    account: str
    model: str
    at: float
    kind: str
    request_sha256: str
    client_token: str
    safety_identifier: str
    provider_task_id: str | None
    status: str
    currency: str
    would_charge: str


class Archive:
    """The file. Every method is one transaction; calls are short and made on the event loop.

    One process at a time has it: two studios on one file would both take up the unfinished tasks. Raises OSError when
    another one does not let go within a moment.
    """

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, timeout=PATIENCE_S, isolation_level=None)
        self._db.row_factory = sqlite3.Row
        try:
            for pragma in ("locking_mode = EXCLUSIVE", "journal_mode = WAL", "synchronous = NORMAL"):
                self._db.execute(f"PRAGMA {pragma}")
            self._db.executescript(_SCHEMA)
            self._add_usage()
        except sqlite3.OperationalError as error:
            self._db.close()
            raise OSError(f"{path} cannot be used, perhaps another studio has it: {error}") from error

    def close(self) -> None:
        """Lets go of the file."""
        self._db.close()

    def clear(self) -> None:
        """Forgets everything."""
        with self._unit() as db:
            for table in ("posts", "submissions", "tasks"):
                db.execute(f"DELETE FROM {table}")

    def received(self, post: Post) -> int:
        """Records a POST and gives its number."""
        row = self._db.execute(
            "INSERT INTO posts (at, account, path, model, client_token, request_sha256) VALUES (?, ?, ?, ?, ?, ?)",
            (post.at, post.account, post.path, post.model, post.client_token, post.request_sha256),
        )
        return int(row.lastrowid or 0)

    def refused(self, post: int, status: int, code: str) -> None:
        """Records that a POST was answered without accepting a job; status 0 is a cut connection."""
        self._db.execute("UPDATE posts SET fate = 'refused', status = ?, code = ? WHERE id = ?", (status, code, post))

    def replayed(self, post: int) -> None:
        """Records that a POST was answered with the answer of an earlier one, under the same key."""
        self._db.execute("UPDATE posts SET fate = 'replayed' WHERE id = ?", (post,))

    def knows(self, account: str, client_token: str) -> bool:
        """Whether the account ever accepted a job of that token."""
        found = self._db.execute(
            "SELECT 1 FROM submissions WHERE account = ? AND client_token = ? LIMIT 1", (account, client_token)
        )
        return found.fetchone() is not None

    def accepted(self, submission: Submission, task: Task | None = None) -> None:
        """Records an accepted job, with its task if it is asynchronous, in one transaction."""
        with self._unit() as db:
            db.execute("UPDATE posts SET fate = 'accepted' WHERE id = ?", (submission.post,))
            db.execute(
                "INSERT INTO submissions (id, post, account, model, at, kind, request_sha256, client_token, "
                "safety_identifier, provider_task_id, status, currency, would_charge) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                tuple(getattr(submission, name) for name in Submission.__slots__),
            )
            if task is not None:
                db.execute(
                    "INSERT INTO tasks (id, account, model, status, created_at, record) VALUES (?, ?, ?, ?, ?, ?)",
                    (task.id, task.account, task.model, task.status, task.created_at, msgspec.json.encode(task)),
                )

    def settled(
        self, submission_id: str, status: str, charged: str | None, at: float, usage: Mapping[str, int] | None = None
    ) -> None:
        """Records how an accepted job ended and what it used and cost; `charged` None means nothing."""
        self._db.execute(
            "UPDATE submissions SET status = ?, charged = ?, finished_at = ?, usage = ? WHERE id = ?",
            (status, charged, at, msgspec.json.encode(usage).decode() if usage else None, submission_id),
        )

    def save(self, task: Task, *, charge: bool = False) -> None:
        """Records a task's new state; a terminal one also settles its submission, at its price when `charge`."""
        with self._unit() as db:
            db.execute(
                "UPDATE tasks SET status = ?, record = ? WHERE id = ?",
                (task.status, msgspec.json.encode(task), task.id),
            )
            finished = None if task.status in ACTIVE else task.updated_at
            db.execute(
                "UPDATE submissions SET status = ?, charged = CASE WHEN ? THEN would_charge END, finished_at = ? "
                "WHERE provider_task_id = ?",
                (task.status, charge, finished, task.id),
            )

    def forget_task(self, task_id: str) -> None:
        """Hides a task from its owner; the ledger keeps the submission."""
        self._db.execute("UPDATE tasks SET deleted = 1 WHERE id = ?", (task_id,))

    def task(self, account: str, task_id: str) -> Task | None:
        """The task of that account, or None when it never was or was deleted."""
        row = self._db.execute(
            "SELECT record FROM tasks WHERE id = ? AND account = ? AND deleted = 0", (task_id, account)
        ).fetchone()
        return _task(row["record"]) if row else None

    def tasks(self, account: str) -> list[Task]:
        """All tasks of an account that were not deleted, newest first."""
        rows = self._db.execute(
            "SELECT record FROM tasks WHERE account = ? AND deleted = 0 ORDER BY created_at DESC, rowid DESC",
            (account,),
        )
        return [_task(row["record"]) for row in rows]

    def unfinished(self) -> list[Task]:
        """Tasks of every account that were queued or running, oldest first."""
        rows = self._db.execute("SELECT record FROM tasks WHERE status IN ('queued', 'running') ORDER BY created_at")
        return [_task(row["record"]) for row in rows]

    def abandon_sync(self, at: float) -> None:
        """Ends the synchronous jobs that a kill cut short: nothing was delivered, nothing is charged."""
        self._db.execute(
            "UPDATE submissions SET status = 'failed', finished_at = ? WHERE status = 'running' "
            "AND provider_task_id IS NULL",
            (at,),
        )

    def submissions(self, account: str | None) -> list[Mapping[str, Any]]:
        """Accepted jobs in order of arrival, of one account or of all."""
        return self._select("SELECT * FROM submissions", "ORDER BY at, rowid", account)

    def posts(self, account: str | None) -> list[Mapping[str, Any]]:
        """POSTs in order of arrival, of one account or of all."""
        return self._select("SELECT * FROM posts", "ORDER BY id", account)

    def _add_usage(self) -> None:
        """A file of an earlier studio has no such column."""
        columns = {row["name"] for row in self._db.execute("PRAGMA table_info(submissions)")}
        if "usage" not in columns:
            self._db.execute("ALTER TABLE submissions ADD COLUMN usage TEXT")

    def _select(self, select: str, order: str, account: str | None) -> list[Mapping[str, Any]]:
        where, values = ("WHERE account = ?", (account,)) if account else ("", ())
        return [dict(row) for row in self._db.execute(f"{select} {where} {order}", values)]

    @contextmanager
    def _unit(self) -> Iterator[sqlite3.Connection]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield self._db
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")


def moved(task: Task, status: str, at: float, **changes: Any) -> Task:
    """The same task in another state."""
    return replace(task, status=status, updated_at=at, **changes)


def _task(record: bytes) -> Task:
    return msgspec.json.decode(record, type=Task)
