"""Every outbox of callbacks keeps the same contract."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest
from cryptography.fernet import Fernet
from sqlalchemy import text

from libs.faults.fault import Fault
from libs.store.database import Database
from libs.store.migrations import migrate
from libs.store.sealing import Seal
from services.runs.compose import SCHEMA, VERSIONS
from services.runs.domain import hearing
from services.runs.domain.callbacks import Callback, CallbackState
from services.runs.domain.desks import DeskChanges
from services.runs.domain.plan import MAIN
from services.runs.domain.run import Draft, Node, Order, Run, RunState
from services.runs.ports import Callbacks, Runs, WebhookSecrets
from services.runs.store.memory import MemoryRuns
from services.runs.store.memory_callbacks import MemoryCallbacks, MemorySecrets
from services.runs.store.postgres import PostgresRuns
from services.runs.store.postgres_callbacks import PostgresCallbacks, PostgresSecrets
from tests.support.worlds import START, CountedIds

LEASE = timedelta(seconds=60)
URL = "https://user.example/hook"
END = Draft("run_completed", {"status": "succeeded", "cost": None, "error": None})


@dataclass
class Shelf:
    """The stores of one schema."""

    runs: Runs
    callbacks: Callbacks
    secrets: WebhookSecrets
    database: Database | None = None

    async def ended(self, run_id: str, tenant: str = "a", url: str = URL) -> Run:
        """A Run that has ended."""
        order = Order("clip", {"prompt": "x"}, callback_url=url)
        run = Run(run_id, tenant, RunState.PENDING, order, {MAIN: Node(MAIN, "generate", f"t-{run_id}")}, START)
        kept, _ = await self.runs.add(run, hearing.created(run), "", "f", START)
        saved = await self.runs.save(replace(kept, state=RunState.SUCCEEDED), [END], START, DeskChanges())
        assert saved is not None
        return saved

    async def claim(self, after_s: float = 0.0, busy: tuple[str, ...] = (), size: int = 10) -> list[Callback]:
        """What is due that many seconds later."""
        now = START + timedelta(seconds=after_s)
        return await self.callbacks.claim(now, now + LEASE, busy, size)


@pytest.fixture
async def shelf(store_url: str) -> AsyncIterator[Shelf]:
    """Empty stores."""
    if store_url == "memory:":
        memory = MemoryRuns(CountedIds())
        yield Shelf(memory, MemoryCallbacks(memory), MemorySecrets())
        return
    await migrate(store_url, schema=SCHEMA, versions=VERSIONS)
    database = Database(store_url, schema=SCHEMA)
    key = Fernet.generate_key().decode()
    try:
        runs = PostgresRuns(database, CountedIds())
        yield Shelf(runs, PostgresCallbacks(database), PostgresSecrets(database, Seal(lambda: key)), database)
    finally:
        await database.close()


async def test_a_message_comes_with_its_event(shelf: Shelf) -> None:
    """AUTH-5: the message is there with the terminal event and has its id; without a URL there is none."""
    run = await shelf.ended("r1")
    await shelf.ended("r2", url="")
    (callback,) = await shelf.callbacks.of_run("r1")
    events = await shelf.runs.events("r1", 0, 10)
    assert callback.id == events[-1].id
    assert (callback.type, callback.url, callback.tenant, callback.attempts) == ("run.completed", URL, "a", 0)
    assert await shelf.callbacks.of_run("r2") == []
    assert await shelf.runs.get("r1") == run


async def test_a_slower_writer_leaves_no_message(shelf: Shelf) -> None:
    """AUTH-5, EVENT-1: of two writers of one end one wins, and there is one message; a redriven Run's new end is told
    again."""
    run = await shelf.ended("r1")
    assert await shelf.runs.save(replace(run, revision=1), [END], START, DeskChanges()) is None
    assert len(await shelf.callbacks.of_run("r1")) == 1
    assert await shelf.runs.save(run, [Draft("run_started"), END], START, DeskChanges()) is not None
    newest, first = await shelf.callbacks.of_run("r1")
    assert newest.id > first.id


async def test_a_claim_is_a_lease(shelf: Shelf) -> None:
    """AUTH-5: a message is given to one claimer; after the lease to another, with one attempt more."""
    await shelf.ended("r1")
    (claimed,) = await shelf.claim()
    assert (claimed.attempts, claimed.next_at) == (1, START + LEASE)
    assert await shelf.claim(59) == []
    (again,) = await shelf.claim(60)
    assert (again.id, again.body, again.attempts) == (claimed.id, claimed.body, 2)
    late = replace(claimed, state=CallbackState.DELIVERED, finished_at=START)
    assert not await shelf.callbacks.record(late)
    assert await shelf.callbacks.record(replace(again, state=CallbackState.DELIVERED, finished_at=START))
    assert await shelf.claim(9999) == []
    (kept,) = await shelf.callbacks.of_run("r1")
    assert (kept.state, kept.finished_at) == (CallbackState.DELIVERED, START)


async def test_claims_do_not_meet(shelf: Shelf) -> None:
    """AUTH-5: claimers at one moment get different messages, at most as many as they ask for."""
    for number in range(6):
        await shelf.ended(f"r{number}")
    pages = await asyncio.gather(*(shelf.claim(size=2) for _ in range(3)))
    ids = [callback.id for page in pages for callback in page]
    assert len(ids) == len(set(ids))
    assert all(len(page) <= 2 for page in pages)
    rest = await shelf.claim()
    assert len(ids) + len(rest) == 6


async def test_a_busy_tenant_holds_up_nobody(shelf: Shelf) -> None:
    """AUTH-5: messages of tenants whose receivers are at work already are passed over."""
    await shelf.ended("r1", "slow")
    await shelf.ended("r2", "quick")
    assert [callback.tenant for callback in await shelf.claim(busy=("slow",))] == ["quick"]
    assert [callback.tenant for callback in await shelf.claim()] == ["slow"]


async def test_the_newest_secrets_are_in_force(shelf: Shelf) -> None:
    """AUTH-5: the newest first, as many as asked for, of one tenant."""
    for number in range(3):
        await shelf.secrets.add("a", f"s{number}", f"whsec_{number}", START)
    await shelf.secrets.add("b", "s9", "whsec_9", START)
    assert await shelf.secrets.of("a", 2) == ["whsec_2", "whsec_1"]
    assert await shelf.secrets.of("c", 2) == []


async def test_secrets_are_sealed_at_rest(shelf: Shelf) -> None:
    """AUTH-5: the database shows no secret, and another key opens none."""
    if shelf.database is None:
        return
    await shelf.secrets.add("a", "s1", "whsec_quiet", START)
    async with shelf.database.read() as tx:
        rows = (await tx.execute(text("SELECT webhook_secrets::text FROM webhook_secrets"))).scalars().all()
    assert "whsec_quiet" not in "".join(rows)
    other = PostgresSecrets(shelf.database, Seal(lambda: Fernet.generate_key().decode()))
    with pytest.raises(Fault, match="sealed by another key"):
        await other.of("a", 2)
