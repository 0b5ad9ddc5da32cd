"""Puts the context together: the only module that knows both its inside and its machines."""

from pathlib import Path
from typing import Any

from libs.host.hosted import ComposedContext
from libs.kernel.clock import Clock
from libs.kernel.world import World
from libs.store.database import Database
from libs.store.migrations import migrate
from pointsman.cost_quote.v1.quote_service_pb2_grpc import add_QuoteServiceServicer_to_server
from services.cost_quote.ports import PriceBooks
from services.cost_quote.servicer import QuoteServicer
from services.cost_quote.settings import Settings
from services.cost_quote.store.memory import MemoryPriceBooks
from services.cost_quote.store.postgres import PostgresPriceBooks

SCHEMA = "cost_quote"
VERSIONS = Path(__file__).parent / "store" / "migrations" / "versions"
SERVICE = "pointsman.cost_quote.v1.QuoteService"


def build(settings: Settings, channels: Any, world: World) -> ComposedContext:
    """The context, not yet at work. It calls no other context, so it takes no channel."""
    if settings.database_url == "memory:":
        return assemble(MemoryPriceBooks(), world.clock)
    database = Database(settings.database_url, schema=SCHEMA)
    context = assemble(PostgresPriceBooks(database), world.clock)
    context.migration = lambda: migrate(settings.database_url, schema=SCHEMA, versions=VERSIONS)
    context.finish = (database.close,)
    return context


def assemble(books: PriceBooks, clock: Clock) -> ComposedContext:
    """The context over a store of the caller's choice."""
    servicer = QuoteServicer(books, clock)
    return ComposedContext(SCHEMA, ((SERVICE, lambda server: add_QuoteServiceServicer_to_server(servicer, server)),))
