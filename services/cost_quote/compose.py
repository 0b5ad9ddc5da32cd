"""Puts the context together: the only module that knows both its inside and its machines."""

from pathlib import Path
from typing import Any

from libs.host.hosted import ComposedContext
from libs.host.ticker import Ticker
from libs.kernel.clock import Clock
from libs.kernel.world import World
from libs.store.database import Database
from libs.store.migrations import migrate
from pointsman.cost_quote.v1.budget_service_pb2_grpc import add_BudgetServiceServicer_to_server
from pointsman.cost_quote.v1.quote_service_pb2_grpc import add_QuoteServiceServicer_to_server
from services.cost_quote.app.check_ledger import CheckLedger
from services.cost_quote.app.move_holds import MoveHolds
from services.cost_quote.ports import Budgets, PriceBooks
from services.cost_quote.servicer.budgets import BudgetServicer
from services.cost_quote.servicer.quotes import QuoteServicer
from services.cost_quote.settings import Settings
from services.cost_quote.store.budgets_memory import MemoryBudgets
from services.cost_quote.store.budgets_postgres import PostgresBudgets
from services.cost_quote.store.memory import MemoryPriceBooks
from services.cost_quote.store.postgres import PostgresPriceBooks

SCHEMA = "cost_quote"
VERSIONS = Path(__file__).parent / "store" / "migrations" / "versions"
QUOTES = "pointsman.cost_quote.v1.QuoteService"
CHECK_SHARE = 0.05
"""Of the time the ledger is looked at at most, however much there is to read from its first entry."""
BUDGETS = "pointsman.cost_quote.v1.BudgetService"


def build(settings: Settings, channels: Any, world: World) -> ComposedContext:
    """The context, not yet at work. It calls no other context, so it takes no channel."""
    budgets: Budgets = MemoryBudgets(world.clock)
    if settings.database_url == "memory:":
        context = assemble(MemoryPriceBooks(), world.clock, budgets)
    else:
        database = Database(settings.database_url, schema=SCHEMA)
        budgets = PostgresBudgets(database)
        context = assemble(PostgresPriceBooks(database), world.clock, budgets)
        context.migration = lambda: migrate(settings.database_url, schema=SCHEMA, versions=VERSIONS)
        context.finish = (budgets.close, database.close)
    check = CheckLedger(budgets)
    context.tickers = (
        Ticker("cost_quote.check_ledger", check, world=world, interval_s=settings.check_s, most_share=CHECK_SHARE),
    )
    return context


def assemble(books: PriceBooks, clock: Clock, budgets: Budgets | None = None) -> ComposedContext:
    """The context over stores of the caller's choice; without budgets, over a new ledger in memory."""
    ledger = MemoryBudgets(clock) if budgets is None else budgets
    quotes, holds = QuoteServicer(books, clock), BudgetServicer(ledger, MoveHolds(ledger, books))
    return ComposedContext(
        SCHEMA,
        (
            (QUOTES, lambda server: add_QuoteServiceServicer_to_server(quotes, server)),
            (BUDGETS, lambda server: add_BudgetServiceServicer_to_server(holds, server)),
        ),
    )
