"""The ledgers that keep one contract."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from services.cost_quote.ports import Budgets
from tests.contract.cost_quote.ledgers import Bench, bench, emptied


@pytest.fixture(params=["memory", "postgres"])
def ledger_url(request: pytest.FixtureRequest) -> str:
    """Where the ledger under test lies, without rows."""
    if request.param == "memory":
        return "memory:"
    return asyncio.run(emptied(request.getfixturevalue("pg_module_url")))


@pytest.fixture
async def ground(ledger_url: str) -> AsyncIterator[Bench]:
    """A ledger; whatever a test does, it is sound at the end."""
    made = await bench(ledger_url)
    yield made
    assert await made.budgets.mismatches() == await made.budgets.mismatches(whole=True) == []
    await made.close()


@pytest.fixture
def budgets(ground: Bench) -> Budgets:
    """The port alone."""
    return ground.budgets
