"""Synchronous calls in PostgreSQL: callers of one turn of the loop share a statement and a commit.

Laws of this file: intents and ends each have a connection of their own, so that an end that nobody waits for is never
in the way of an intent that somebody does; both only append.
"""

from collections.abc import Awaitable, Sequence
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import Select, Table, func, select, text
from sqlalchemy.dialects import postgresql

from libs.faults.fault import Fault
from libs.store.database import Database
from libs.store.gathering import Gathering
from services.routing.domain.calls.call import Call
from services.routing.domain.rounds import RoundOutcome, SelectionRound
from services.routing.ports.calls import CallQuery, Intent
from services.routing.store.calls_memory import known_already
from services.routing.store.calls_tables import call_attempts, calls
from services.routing.store.paging import key_of, token_of

EVERYBODYS = frozenset({"governance_backend_down", "revision_conflict"})


def _append(table: Table, key: str, unless: str) -> str:
    """A statement that adds many rows at once, a column of each for a parameter, and answers those that are new."""
    dialect, names = postgresql.dialect(), [column.name for column in table.c]
    arrays = ", ".join(f"${place}::{column.type.compile(dialect)}[]" for place, column in enumerate(table.c, 1))
    return (
        f"INSERT INTO {table.name} ({', '.join(names)}) SELECT g.* FROM unnest({arrays}) AS g({', '.join(names)}) "
        f"{unless} ON CONFLICT DO NOTHING RETURNING {key}"
    )


UNENDED = "WHERE g.call_id <> ALL (ARRAY(SELECT c.id FROM calls c WHERE c.id = ANY ($1)))"
INTEND = _append(call_attempts, "call_id", UNENDED)
END = _append(calls, "id", "")
ANSWER = "SELECT answer FROM call_answers WHERE tenant = $1 AND key = $2 AND until > $3"
KEEP_ANSWER = """
INSERT INTO call_answers (tenant, key, answer, until) VALUES ($1, $2, $3, $4)
ON CONFLICT (tenant, key) DO UPDATE SET answer = excluded.answer, until = excluded.until
"""
OVERDUE = text("""
SELECT a.record FROM call_attempts a
WHERE a.overdue_at >= :since AND a.overdue_at <= :until AND NOT EXISTS (SELECT FROM calls c WHERE c.id = a.call_id)
  AND NOT EXISTS (SELECT FROM call_attempts l WHERE l.call_id = a.call_id AND l.number > a.number)
ORDER BY a.overdue_at, a.call_id LIMIT :count
""")
LAST_SUCCESS = text(
    "SELECT max(finished_at) FROM calls WHERE finished_at >= :since AND model = :model AND state = 'succeeded'"
)
FORGET = text("""
WITH old AS (
  DELETE FROM calls WHERE id = ANY (ARRAY(SELECT id FROM calls WHERE finished_at < :before LIMIT :count)) RETURNING id
), tries AS (
  DELETE FROM call_attempts WHERE call_id = ANY (ARRAY(SELECT id FROM old))
), stale AS (
  DELETE FROM call_answers WHERE (tenant, key) IN (
    SELECT tenant, key FROM call_answers WHERE until <= :now ORDER BY until LIMIT :count) RETURNING 1
)
SELECT (SELECT count(*) FROM old) + (SELECT count(*) FROM stale)
""")
ENDED = text("SELECT record FROM calls WHERE id = ANY (:ids) ORDER BY id")
UNENDED_OF = text("""
SELECT 1 FROM call_attempts a
WHERE a.overdue_at >= :since AND a.hold = :hold AND NOT EXISTS (SELECT FROM calls c WHERE c.id = a.call_id) LIMIT 1
""")
PAID_BY = text("SELECT record FROM calls WHERE finished_at >= :since AND hold = :hold")
GET = text("SELECT record, rounds FROM calls WHERE id = :id")
TRIES = text("SELECT round, decided_at, selection, record FROM call_attempts WHERE call_id = :id ORDER BY number")

encode = msgspec.json.Encoder().encode
_call = msgspec.json.Decoder(Call)
_rounds = msgspec.json.Decoder(tuple[SelectionRound, ...])


class PostgresCalls:
    """`CallStore` and `AnswerStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._intending, self._ending, self._answering = (database.lane() for _ in range(3))
        self._intents: Gathering[Intent, None] = Gathering(
            self._intend_all, lambda intent: intent.call.id, shared=_is_everybodys
        )
        self._ends: Gathering[tuple[Call, Sequence[SelectionRound]], bool] = Gathering(
            self._end_all, lambda ended: ended[0].id, shared=_is_everybodys
        )

    async def close(self) -> None:
        """Answer who waits."""
        await self._intents.close()
        await self._ends.close()

    async def intend(self, intent: Intent) -> None:
        """See the port."""
        await self._intents.ask(intent)

    async def _intend_all(self, group: Sequence[Intent]) -> Sequence[Exception | None]:
        rows = await self._intending.fetch(INTEND, *_columns([_intent_row(intent) for intent in group]))
        kept = {row["call_id"] for row in rows}
        return [None if intent.call.id in kept else known_already(intent.call.id) for intent in group]

    def end(self, call: Call, rounds: Sequence[SelectionRound]) -> Awaitable[bool]:
        """See the port."""
        return self._ends.begin((call, rounds))

    async def _end_all(self, group: Sequence[tuple[Call, Sequence[SelectionRound]]]) -> Sequence[bool]:
        rows = await self._ending.fetch(END, *_columns([_end_row(call, rounds) for call, rounds in group]))
        kept = {row["id"] for row in rows}
        return [call.id in kept for call, _ in group]

    async def get(self, call_id: str) -> tuple[Call, tuple[SelectionRound, ...]] | None:
        """See the port."""
        async with self._database.read() as tx:
            ended = (await tx.execute(GET, {"id": call_id})).mappings().one_or_none()
            tries = (await tx.execute(TRIES, {"id": call_id})).mappings().all()
        if ended is None and not tries:
            return None
        rounds = [
            SelectionRound(call_id, row["round"], row["decided_at"], RoundOutcome.RESERVED, row["selection"])
            for row in tries
        ]
        if ended is None:
            return _call.decode(tries[-1]["record"]), tuple(rounds)
        rounds += _rounds.decode(ended["rounds"])
        return _call.decode(ended["record"]), tuple(sorted(rounds, key=lambda item: item.round))

    async def ended(self, call_ids: Sequence[str]) -> tuple[Call, ...]:
        """See the port."""
        async with self._database.read() as tx:
            found = await tx.execute(ENDED, {"ids": list(call_ids)})
            return tuple(_call.decode(record) for record in found.scalars())

    async def paid_by(self, hold: str, since: datetime) -> tuple[Call, ...] | None:
        """See the port."""
        asked = {"hold": hold, "since": since}
        async with self._database.read() as tx:
            if (await tx.execute(UNENDED_OF, asked)).first() is not None:
                return None
            return tuple(_call.decode(record) for record in (await tx.execute(PAID_BY, asked)).scalars())

    async def find(self, query: CallQuery, token: str, size: int) -> tuple[tuple[Call, ...], str]:
        """See the port."""
        async with self._database.read() as tx:
            found = (await tx.execute(page_of(query, token, size + 1))).all()
        page = found[:size]
        more = len(found) > size
        return tuple(_call.decode(row.record) for row in page), token_of(*page[-1][:2]) if more else ""

    async def overdue(self, since: datetime, until: datetime, count: int) -> tuple[Call, ...]:
        """See the port."""
        async with self._database.read() as tx:
            found = await tx.execute(OVERDUE, {"since": since, "until": until, "count": count})
            return tuple(_call.decode(record) for record in found.scalars())

    async def last_success(self, model: str, since: datetime) -> datetime | None:
        """See the port."""
        async with self._database.read() as tx:
            found: datetime | None = (await tx.execute(LAST_SUCCESS, {"model": model, "since": since})).scalar()
        return found

    async def forget(self, before: datetime, now: datetime, count: int) -> int:
        """See the port."""
        async with self._database.unit() as tx:
            return int((await tx.execute(FORGET, {"before": before, "now": now, "count": count})).scalar_one())

    async def answer(self, tenant: str, key: str, now: datetime) -> bytes | None:
        """See the port."""
        for row in await self._answering.fetch(ANSWER, tenant, key, now):
            return bytes(row["answer"])
        return None

    async def keep_answer(self, tenant: str, key: str, answer: bytes, until: datetime) -> None:
        """See the port."""
        await self._answering.fetch(KEEP_ANSWER, tenant, key, answer, until)


def page_of(query: CallQuery, token: str, size: int) -> Select[Any]:
    """The statement of a page: (finished_at, id, record)."""
    newest_first = calls.c.finished_at.desc(), calls.c.id.desc()
    wanted = select(calls.c.finished_at, calls.c.id, calls.c.record).order_by(*newest_first).limit(size)
    after = key_of(token)
    if after is not None:
        wanted = wanted.where(func.row(calls.c.finished_at, calls.c.id) < func.row(*after))
    if query.tenant:
        wanted = wanted.where(calls.c.tenant == query.tenant)
    if query.model:
        wanted = wanted.where(calls.c.model == query.model)
    if query.states:
        wanted = wanted.where(calls.c.state.in_([state.value for state in query.states]))
    if query.session_id:
        wanted = wanted.where(text("session <> ''"), calls.c.session == query.session_id)
    if query.since is not None:
        wanted = wanted.where(calls.c.finished_at >= query.since)
    if query.until is not None:
        wanted = wanted.where(calls.c.finished_at < query.until)
    return wanted


def _intent_row(intent: Intent) -> tuple[Any, ...]:
    tried, chosen = intent.tried, intent.round
    return (
        intent.call.id,
        tried.number,
        tried.id,
        tried.supply,
        tried.sent_at,
        intent.overdue_at,
        chosen.round,
        chosen.decided_at,
        chosen.record,
        encode(intent.call).decode(),
        intent.call.hold,
    )


def _end_row(call: Call, rounds: Sequence[SelectionRound]) -> tuple[Any, ...]:
    used = call.usage.tokens if call.usage else None
    return (
        call.id,
        call.tenant,
        call.model,
        call.kind,
        call.state.value,
        call.failure.code if call.failure else "",
        call.supply,
        call.currency,
        call.cost.amount,
        used or 0,
        call.created_at,
        call.finished_at,
        encode(call).decode(),
        encode(rounds).decode(),
        call.session_id,
        call.hold,
    )


def _columns(rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]


def _is_everybodys(error: Exception) -> bool:
    return isinstance(error, Fault) and error.code in EVERYBODYS
