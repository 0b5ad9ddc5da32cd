"""One engine: SQLAlchemy over asyncpg, with every bound said aloud.

Nothing here waits forever: not for a connection, not for a lock, not for a statement, and no transaction is left open.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import URL, event, exc, make_url
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from libs.kernel.canonical import canonical_json

MARGIN_S = 2.0
DRIVER = "postgresql+asyncpg"
DIALECTS = frozenset({"postgres", "postgresql", DRIVER})


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of one context's connections. Times in seconds; connections: `pool_size` kept, `max_overflow` at a peak.

    `statement_timeout_s` 0 means no limit (migrations). Connections that nobody needed for `quiet_s` are closed.
    """

    pool_size: int = 4
    max_overflow: int = 6
    pool_timeout_s: float = 5.0
    connect_timeout_s: float = 5.0
    statement_timeout_s: float = 10.0
    lock_timeout_s: float = 5.0
    idle_in_transaction_timeout_s: float = 30.0
    quiet_s: float = 30.0


def driver_url(url: str) -> URL:
    """The same database, spelled for our driver. ValueError if the address is not PostgreSQL's.

    Takes what people write: `postgres://`, `postgresql://`, libpq's `sslmode=`, a socket directory as `?host=`.
    """
    try:
        parsed = make_url(url)
    except exc.ArgumentError as error:
        raise ValueError("the database address is not a URL; expected postgresql://USER@HOST/DATABASE") from error
    if parsed.drivername not in DIALECTS:
        raise ValueError(f"the database address begins with {parsed.drivername}://, expected postgresql://")
    query = dict(parsed.query)
    if "sslmode" in query:
        query["ssl"] = query.pop("sslmode")
    return parsed.set(drivername=DRIVER, query=query)


def server_settings(schema: str, bounds: Bounds) -> dict[str, str]:
    """What every session is told at its start; values as PostgreSQL spells them."""
    return {
        "application_name": f"pointsman-{schema}",
        "search_path": f'"{schema}"',
        "timezone": "UTC",
        "jit": "off",  # statements here are short; compiling them costs more than running them
        "statement_timeout": _milliseconds(bounds.statement_timeout_s),
        "lock_timeout": _milliseconds(bounds.lock_timeout_s),
        "idle_in_transaction_session_timeout": _milliseconds(bounds.idle_in_transaction_timeout_s),
    }


def make_engine(url: str, *, schema: str, bounds: Bounds) -> AsyncEngine:
    """An engine whose sessions see `schema` alone, so that tables need no prefix. Opens no connection yet.

    JSON columns take what `kernel.canonical` takes (Decimal, datetime, enums, dataclasses).
    """
    arguments: Mapping[str, Any] = {
        "timeout": bounds.connect_timeout_s,
        # The server ends a statement first; the client's own limit only notices a server that no longer answers.
        "command_timeout": bounds.statement_timeout_s + MARGIN_S if bounds.statement_timeout_s else None,
        "server_settings": server_settings(schema, bounds),
        "prepared_statement_cache_size": 256,
    }
    engine = create_async_engine(
        driver_url(url),
        pool_size=bounds.pool_size,
        max_overflow=bounds.max_overflow,
        pool_timeout=bounds.pool_timeout_s,
        pool_use_lifo=True,  # a quiet context falls back to few warm connections
        connect_args=arguments,
        hide_parameters=True,  # values of statements do not go to logs
        json_serializer=lambda value: canonical_json(value).decode(),
        json_deserializer=json.loads,
    )
    event.listen(engine.sync_engine, "checkout", _refuse_closed)
    return engine


def _refuse_closed(connection: Any, _record: object, _proxy: object) -> None:
    """Drop pooled connections whose server has gone, without asking it: a ping would cost a round trip a unit."""
    if connection.driver_connection.is_closed():
        raise exc.InvalidatePoolError


def _milliseconds(seconds: float) -> str:
    return str(round(seconds * 1000))
