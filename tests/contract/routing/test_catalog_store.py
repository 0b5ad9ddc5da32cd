"""Every store of the catalogue keeps the same contract."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from sqlalchemy import MetaData

from libs.faults.fault import Fault
from libs.store.database import Database
from libs.store.migrations import migrate
from libs.store.upgrading import differences
from services.routing.domain.catalog_file import ObjectKind, read_file
from services.routing.domain.catalog_history import Holdings, ObjectRevision
from services.routing.domain.catalog_plan import Plan, plan_admin, plan_apply
from services.routing.domain.publication import Surroundings
from services.routing.ports import CatalogStore
from services.routing.store import calls_tables, catalog_tables, tasks_tables
from services.routing.store.catalog_memory import MemoryCatalogStore
from services.routing.store.catalog_postgres import PostgresCatalogStore

ROOT = Path(__file__).parents[3]
VERSIONS = ROOT / "services" / "routing" / "store" / "migrations" / "versions"
MARKET = (ROOT / "tests" / "cases" / "catalogs" / "market.yaml").read_text()
NOW = datetime(2026, 11, 29, 12, 0, 0, 123456, tzinfo=UTC)
AROUND = Surroundings({"ark": frozenset({"list"})})
DISABLED = (ObjectKind.SUPPLY, "other/seedance")


@pytest.fixture(params=["memory", "postgres"])
def store_url(request: pytest.FixtureRequest) -> str:
    """Where the store under test lies."""
    return "memory:" if request.param == "memory" else str(request.getfixturevalue("pg_url"))


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[CatalogStore]:
    """An empty store."""
    if store_url == "memory:":
        yield MemoryCatalogStore()
        return
    await migrate(store_url, schema="routing", versions=VERSIONS)
    database = Database(store_url, schema="routing")
    try:
        yield PostgresCatalogStore(database)
    finally:
        await database.close()


def market(before: Holdings) -> Plan:
    """Applying the market."""
    return plan_apply(before, read_file(MARKET), False, AROUND, NOW)


async def kept(store: CatalogStore, plan: Plan) -> Plan:
    """The plan, committed on what is there."""
    await store.commit(plan.holdings.revision - 1, plan.holdings, plan.catalog, plan.revisions)
    return plan


async def test_before_the_first_revision(store: CatalogStore):
    """CAT-2: nothing is at revision 0."""
    assert (await store.revision(), await store.holdings()) == (0, Holdings())
    assert await store.snapshot(1) is None
    assert await store.object(ObjectKind.SUPPLY, "x") is None
    assert list(await store.objects(None, True, None, 10)) == []


async def test_what_was_committed_is_read_back_as_it_was(store: CatalogStore):
    """CAT-2: holdings, the whole catalogue and every object, equal in every field and type."""
    plan = await kept(store, market(await store.holdings()))
    assert await store.revision() == 1
    assert await store.holdings() == plan.holdings
    assert await store.snapshot(1) == plan.catalog
    assert plan.catalog.policies["stable"].absolute_cost_limit == Decimal("50.00")
    found = await store.object(ObjectKind.MODEL, "seedance-2.0-933")
    assert found == plan.holdings.heads[(ObjectKind.MODEL, "seedance-2.0-933")]
    assert found.published


async def test_revisions_stay_readable(store: CatalogStore):
    """CAT-2: a later revision changes no earlier one, neither of the object nor of the whole."""
    first = await kept(store, market(await store.holdings()))
    second = plan_admin(await store.holdings(), DISABLED, "disabled", "incident 7", NOW + timedelta(hours=1))
    await kept(store, second)
    assert (await store.snapshot(1), await store.snapshot(2)) == (first.catalog, second.catalog)
    revisions = [await store.object(*DISABLED, revision=number) for number in (1, 2, 3)]
    assert [(found.admin, found.note) if found else None for found in revisions] == [
        ("", ""),
        ("disabled", "incident 7"),
        None,
    ]
    newest = await store.object(*DISABLED)
    assert newest is not None
    assert newest.revision == 2
    assert (await store.first_declared(ObjectKind.SUPPLY))["other/seedance"] == NOW


async def test_a_revision_without_new_objects_is_kept_too(store: CatalogStore):
    """CAT-2, COST-3: a new rate changes the catalogue and no object."""
    plan = await kept(store, market(await store.holdings()))
    after = replace(plan.holdings, revision=2, fx={"USD": Decimal("7.10")})
    await store.commit(1, after, after.catalog(), [])
    found = [await store.snapshot(number) for number in (1, 2)]
    assert [str(catalog.fx["USD"]) if catalog else "" for catalog in found] == ["7.00", "7.10"]
    assert await store.holdings() == after


async def test_of_two_writers_on_the_same_base_one_wins(store: CatalogStore):
    """CAT-1, CAT-2: the other changes nothing and is told revision_conflict."""
    plan = market(await store.holdings())
    outcomes = await asyncio.gather(*(kept(store, plan) for _ in range(4)), return_exceptions=True)
    faults = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    assert [fault.code for fault in faults if isinstance(fault, Fault)] == ["revision_conflict"] * 3
    assert await store.revision() == 1
    assert len(await store.objects(None, True, None, 1000)) == len(plan.revisions)


async def test_a_stale_base_is_refused(store: CatalogStore):
    """CAT-2: a change planned on an older revision is not written."""
    plan = await kept(store, market(await store.holdings()))
    stale = plan_admin(plan.holdings, DISABLED, "disabled", "", NOW)
    await kept(store, stale)
    with pytest.raises(Fault) as refusal:
        await kept(store, stale)
    assert refusal.value.code == "revision_conflict"
    assert await store.revision() == 2


async def test_a_base_that_is_not_there_is_refused(store: CatalogStore):
    """CAT-2: catalogue revisions rise by one, without gaps."""
    plan = market(await store.holdings())
    ahead = replace(plan.holdings, revision=5)
    with pytest.raises(Fault) as refusal:
        await store.commit(4, ahead, replace(plan.catalog, revision=5), plan.revisions)
    assert refusal.value.code == "revision_conflict"
    assert await store.revision() == 0


async def test_objects_are_listed_in_order_and_by_pages(store: CatalogStore):
    """CAT-2: newest revisions by sort and id; retired ones on demand."""
    plan = await kept(store, market(await store.holdings()))
    heads = plan.holdings.heads
    gone: ObjectRevision = heads[(ObjectKind.TENANT, "studio-a")]
    retired = replace(gone, revision=2, catalog_revision=2, retired=True)
    after = Holdings(2, "CNY", plan.holdings.fx, {**heads, retired.key: retired})
    await store.commit(1, after, after.catalog(), [retired])
    everything = await store.objects(None, True, None, 1000)
    assert [(item.kind, item.id) for item in everything] == sorted(heads)
    assert [item.id for item in await store.objects(ObjectKind.TENANT, False, None, 10)] == []
    first = await store.objects(ObjectKind.SUPPLY, False, None, 2)
    second = await store.objects(ObjectKind.SUPPLY, False, (str(first[-1].kind), first[-1].id), 10)
    assert [item.id for item in (*first, *second)] == [
        "ark-main/seedance",
        "other/pictures",
        "other/seedance",
        "other/seedance-900",
    ]
    assert (await store.object(ObjectKind.TENANT, "studio-a")) == retired


async def test_the_migrated_tables_are_the_declared_ones(pg_url: str):
    """CAT-2, OPS-7: migrations and tables say the same."""
    await migrate(pg_url, schema="routing", versions=VERSIONS)
    declared = MetaData()
    for part in (tasks_tables, calls_tables, catalog_tables):
        for table in part.metadata.sorted_tables:
            table.to_metadata(declared)
    assert await differences(pg_url, schema="routing", metadata=declared) == []
