"""The process that dies: all contexts of the product in one process, as `python -m services` hosts them, with covers
around what routing, runs, cost_quote and provider_adapter do to others.

    SWEEP_PLACE=routing.save.1/after SWEEP_JOURNAL=FILE python -m tests.e2e.sweep.mortal

It is told everything else by the product's own settings.
"""

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from libs.blobs.opening import open_blobs
from libs.host import process
from libs.host.hosted import Context
from libs.host.ticker import Ticker
from libs.kernel.world import World
from libs.store.engine import Bounds
from services.__main__ import BUILDERS
from services.cost_quote import compose as cost_compose
from services.cost_quote.app.check_ledger import CheckLedger
from services.cost_quote.settings import Settings as CostSettings
from services.cost_quote.store.budgets_postgres import PostgresBudgets
from services.cost_quote.store.postgres import PostgresPriceBooks
from services.provider_adapter import compose as provider_compose
from services.provider_adapter.driver import HttpDriver
from services.provider_adapter.settings import Settings as ProviderSettings
from services.provider_adapter.store.media import BlobMedia
from services.provider_adapter.store.secrets import ReferencedSecrets
from services.routing import compose as routing_compose
from services.routing.settings import Settings as RoutingSettings
from services.routing.store.catalog_postgres import PostgresCatalogStore
from services.routing.store.tasks_postgres import PostgresTasks
from services.runs import compose as runs_compose
from services.runs.peers.examiner import BlobExaminer
from services.runs.settings import Settings as RunsSettings
from services.runs.store.postgres import PostgresRuns
from services.runs.store.postgres_desks import PostgresDesks
from tests.e2e.sweep.effects import Effects, MortalChannels, MortalDatabase, MortalMedia, MortalTransport, Named


def routing(effects: Effects, env: Mapping[str, str], channels: Any, world: World) -> Context:
    """`services.routing.compose.build`, covered. It is migrated already."""
    settings = RoutingSettings.from_env(env)
    bounds = Bounds(pool_size=settings.pool_size)
    database = MortalDatabase(effects, settings.database_url, schema=routing_compose.SCHEMA, bounds=bounds)
    tasks, catalog = (Named("routing", store(database)) for store in (PostgresTasks, PostgresCatalogStore))
    stores = routing_compose.Stores(tasks, catalog, close=(database.close,))
    return routing_compose.assemble(stores, settings, MortalChannels(channels, effects), world)


def runs(effects: Effects, env: Mapping[str, str], channels: Any, world: World) -> Context:
    """`services.runs.compose.build`, covered. It is migrated already."""
    settings = RunsSettings.from_env(env)
    database = MortalDatabase(effects, settings.database_url, schema=runs_compose.SCHEMA)
    store: Any = Named("runs", PostgresRuns(database, world.ids))
    desks: Any = Named("runs", PostgresDesks(database))
    examiner = BlobExaminer(open_blobs(settings.blobs_address), channels.to("routing"), world.ids)
    context = runs_compose.assemble(store, desks, examiner, settings, channels, world)
    context.finish = (database.close,)
    return context


def cost_quote(effects: Effects, env: Mapping[str, str], channels: Any, world: World) -> Context:
    """`services.cost_quote.compose.build`, covered. It is migrated already."""
    settings = CostSettings.from_env(env)
    database = MortalDatabase(effects, settings.database_url, schema=cost_compose.SCHEMA)
    books: Any = Named("cost_quote", PostgresPriceBooks(database))
    budgets: Any = Named("cost_quote", PostgresBudgets(database))
    context = cost_compose.assemble(books, world.clock, budgets)
    check = CheckLedger(budgets)
    context.tickers = (Ticker("cost_quote.check_ledger", check, world=world, interval_s=settings.check_s),)
    context.finish = (budgets.close, database.close)
    return context


def provider_adapter(effects: Effects, env: Mapping[str, str], channels: Any, world: World) -> Context:
    """`services.provider_adapter.compose.build`, covered."""
    settings = ProviderSettings.from_env(env)
    driver = HttpDriver(
        answer_bytes=settings.answer_bytes, connect_s=settings.timeouts.connect_s, media_s=settings.media_s
    )
    context = provider_compose.assemble(
        MortalTransport(driver, effects),
        MortalMedia(BlobMedia(open_blobs(settings.blobs_address)), effects),
        ReferencedSecrets(settings.environment),
        settings,
        world,
    )
    context.begin = (driver.open,)
    context.finish = (*context.finish, driver.close)
    return context


def main() -> None:
    """Host everything until a signal or the place."""
    effects = Effects(os.environ["SWEEP_PLACE"], Path(os.environ["SWEEP_JOURNAL"]))
    covered = {build.__name__: partial(build, effects) for build in (routing, runs, cost_quote, provider_adapter)}
    process.main({**BUILDERS, **covered}, [])


if __name__ == "__main__":
    main()
