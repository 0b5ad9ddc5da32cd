"""Driver errors in our own words. No driver error passes this line towards `app`, except our own bugs.

| what happened | becomes |
|---|---|
| the server is away, starting, stopping, full, too slow; no connection became free | governance_backend_down |
| deadlock or serialization failure, retries used up | revision_conflict |
| a uniqueness or exclusion rule refused the row | conflict, with metadata `constraint` |
| a text holds a NUL character, which PostgreSQL keeps in no text and in no document | validation_failed |
| anything else (a wrong statement, a wrong type) | itself: a bug is not a Fault |
"""

import asyncpg
from sqlalchemy.exc import DBAPIError, DisconnectionError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from libs.faults.fault import Fault

RETRYABLE_STATES = frozenset({"40001", "40P01"})  # serialization failure, deadlock: the whole unit may run again
REFUSED_STATES = frozenset({"23505", "23P01"})  # unique, exclusion
NUL_STATES = frozenset({"22021", "22P05"})  # in a text; in a document, where it is spelt out
LOCK_TIMEOUT = "55P03"
# 08 connection, 53 out of resources, 55P03 lock timeout, 57 operator intervention (cancel, shutdown, starting up)
AWAY_STATES = ("08", "53", LOCK_TIMEOUT, "57")
DRIVER_ERRORS = (
    DBAPIError,
    DisconnectionError,
    PoolTimeoutError,
    OSError,
    TimeoutError,
    asyncpg.InternalClientError,  # the driver's own word for a connection that ended while it was looked at
)

BROKEN = (InterfaceError, OperationalError, asyncpg.InterfaceError, asyncpg.InternalClientError)


def sqlstate(error: BaseException) -> str:
    """The five letters of SQL's error code, or an empty text if the error did not come from the server."""
    origin = error.orig if isinstance(error, DBAPIError) else error
    return getattr(origin, "sqlstate", None) or ""


def is_retryable(error: BaseException) -> bool:
    """Whether the same unit of work may simply run again."""
    return sqlstate(error) in RETRYABLE_STATES


def translate(error: BaseException) -> BaseException:
    """The Fault for a driver error, or the error itself where it is our own bug."""
    state = sqlstate(error)
    if state in RETRYABLE_STATES:
        return Fault.of("revision_conflict", "other writers were in the way each time this was tried")
    if state in REFUSED_STATES:
        constraint = _constraint(error)
        return Fault.of("conflict", f"an equal row exists ({constraint})", metadata={"constraint": constraint})
    if state in NUL_STATES:
        return Fault.of("validation_failed", "a text holds a NUL character, and none can be kept")
    if state.startswith(AWAY_STATES):
        return Fault.of("governance_backend_down", f"the database cannot serve now (SQLSTATE {state})")
    if isinstance(error, PoolTimeoutError):
        return Fault.of("governance_backend_down", "no database connection became free in time")
    if isinstance(error, (DisconnectionError, OSError, TimeoutError)):
        return Fault.of("governance_backend_down", "the database cannot be reached")
    if isinstance(error, BROKEN) and not state:
        return Fault.of("governance_backend_down", "the connection to the database broke")
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return Fault.of("governance_backend_down", "the connection to the database broke")
    return error


def _constraint(error: BaseException) -> str:
    origin = error.orig if isinstance(error, DBAPIError) else error
    named = (getattr(item, "constraint_name", None) for item in (origin, getattr(origin, "__cause__", None)))
    return next(filter(None, named), "unnamed")
