"""Both implementations of `TaskStore` and `AlertStore`, and the values that their contract is tried with."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from libs.kernel.money import Money
from libs.store.database import Database
from libs.store.migrations import migrate
from services.routing.domain import transitions
from services.routing.domain.request import Request
from services.routing.domain.task import Attempt, AttemptState, Task, TaskState
from services.routing.ports import Write
from services.routing.ports.alerts import Alert
from services.routing.store.tasks_memory import MemoryTasks
from services.routing.store.tasks_postgres import PostgresTasks
from tests.support.worlds import START

SCHEMA = "routing"
VERSIONS = Path(__file__).resolve().parents[3] / "services/routing/store/migrations/versions"
KINDS = ("memory", "postgres")


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Any]:
    """PostgreSQL's store in the database at `url`, migrated; the one in memory for an empty `url`."""
    if not url:
        yield MemoryTasks()
        return
    await migrate(url, schema=SCHEMA, versions=VERSIONS)
    database = Database(url, schema=SCHEMA)
    try:
        yield PostgresTasks(database)
    finally:
        await database.close()


def at(seconds: float) -> datetime:
    """That many seconds after the start."""
    return START + timedelta(seconds=seconds)


def queued(task_id: str, created: float = 0, **request: Any) -> Task:
    """A new Task."""
    asked = Request(**{"tenant": "t", "model": "clip", "input": {"prompt": "a boat", "n": 1}, **request})
    return Task(task_id, asked, "video", TaskState.QUEUED, at(created), Money.zero("CNY"))


def attempt(task: Task, number: int = 1, **changes: Any) -> Attempt:
    """An Attempt in `reserved`, with a value in every field that a row must carry."""
    made = Attempt(
        id=f"{task.id}-a{number}",
        task_id=task.id,
        number=number,
        supply="a/clip",
        channel="a",
        state=AttemptState.RESERVED,
        client_token=f"{task.id}-a{number}",
        epoch=task.epoch,
        round=1,
        quote=Money("CNY", Decimal("6.123456789")),
        lease_id=f"{task.id}-a{number}",
        channel_epoch=3,
        supply_epoch=4,
        catalog_revision=7,
        input={"prompt": "a boat", "ratio": 1.5},
        reserved_at=at(1),
        rule="r933-900",
        requested_profile="933",
        actual_profile="900",
        dropped_inputs=("reference_videos",),
    )
    return replace(made, **changes)


def to_submitting(task: Task, number: int = 1) -> Task:
    """The Task with the intent of a new Attempt."""
    return transitions.submitting(task, attempt(task, number), at(2), at(1800))


def alert(alert_id: str, key: str, created: float = 0, **changes: Any) -> Alert:
    """An open alert."""
    made = Alert(alert_id, key, "breaker_opened", "high", "a", "The circuit is open.", "epoch 1", "/v1", at(created))
    return replace(made, **changes)


def write(before: Task, after: Task, now: float = 1, **options: Any) -> Write:
    """A write at that second."""
    return Write(before, after, at(now), **options)
