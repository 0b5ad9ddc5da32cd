"""Reviews and dead letters in PostgreSQL: read here, written only in the transaction of the events that cause them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import func, insert, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert as insert_once
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.store.database import Database
from services.runs.domain.desks import RANKS, DeadLetter, DeskChanges, Review, ReviewState
from services.runs.store import codec
from services.runs.store.tables import dead_letters, reviews, run_events


async def write_desks(tx: AsyncConnection, run_id: str, desks: DeskChanges, now: datetime) -> None:
    """Write what events change on desks."""
    for review in desks.reviews:
        row = _review_row(review)
        once = insert_once(reviews).values(row)
        await tx.execute(once.on_conflict_do_update(index_elements=["id"], set_=row))
    if desks.redriven:
        lying = update(dead_letters).where(dead_letters.c.run_id == run_id, dead_letters.c.redriven_at.is_(None))
        closed = {"redriven_at": now, "redrive_reason": desks.reason}
        await tx.execute(lying.where(dead_letters.c.node.in_(desks.redriven)).values(closed))
    if desks.letters:
        await tx.execute(insert(dead_letters), [_letter_row(letter) for letter in desks.letters])


def _review_row(review: Review) -> dict[str, Any]:
    return {
        "id": review.id,
        "run_id": review.run_id,
        "tenant": review.tenant,
        "state": review.state.value,
        "rank": RANKS.index(review.question.rank),
        "root_cause": review.question.root_cause,
        "opened_at": review.question.opened_at,
        "document": codec.review_to_document(review),
    }


def _letter_row(letter: DeadLetter) -> dict[str, Any]:
    return {
        "id": letter.id,
        "run_id": letter.run_id,
        "node": letter.node,
        "tenant": letter.tenant,
        "created_at": letter.created_at,
        "redriven_at": None,
        "redrive_reason": "",
        "document": codec.letter_to_document(letter),
    }


class PostgresDesks:
    """Implements `ports.Desks`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def review(self, review_id: str) -> Review | None:
        """See the port."""
        async with self._database.read() as tx:
            query = select(reviews.c.document).where(reviews.c.id == review_id)
            document = (await tx.execute(query)).scalar_one_or_none()
        return codec.review_from_document(document) if document is not None else None

    async def reviews(
        self, tenant: str, states: Sequence[ReviewState], run_id: str, offset: int, size: int
    ) -> list[Review]:
        """See the port."""
        cause = (reviews.c.run_id, reviews.c.root_cause)
        first = func.min(reviews.c.opened_at).over(partition_by=cause)
        query = select(reviews.c.document, first.label("first"))
        if tenant:
            query = query.where(reviews.c.tenant == tenant)
        if states:
            query = query.where(reviews.c.state.in_(states))
        if run_id:
            query = query.where(reviews.c.run_id == run_id)
        ordered = query.order_by(reviews.c.rank, first, *cause, reviews.c.opened_at, reviews.c.id)
        async with self._database.read() as tx:
            rows = (await tx.execute(ordered.offset(offset).limit(size))).all()
        return [codec.review_from_document(row.document) for row in rows]

    async def letter(self, letter_id: str) -> DeadLetter | None:
        """See the port."""
        async with self._database.read() as tx:
            row = (await tx.execute(_LETTERS.where(dead_letters.c.id == letter_id))).one_or_none()
        return _letter(row) if row is not None else None

    async def letters(self, tenant: str, run_id: str, with_redriven: bool, before: str, size: int) -> list[DeadLetter]:
        """See the port."""
        place = (dead_letters.c.created_at, dead_letters.c.id)
        query = _LETTERS.order_by(*(column.desc() for column in place)).limit(size)
        if tenant:
            query = query.where(dead_letters.c.tenant == tenant)
        if run_id:
            query = query.where(dead_letters.c.run_id == run_id)
        if not with_redriven:
            query = query.where(dead_letters.c.redriven_at.is_(None))
        async with self._database.read() as tx:
            if before:
                last = (await tx.execute(select(*place).where(dead_letters.c.id == before))).one_or_none()
                query = query.where(tuple_(*place) < tuple_(*last)) if last is not None else query
            return [_letter(row) for row in (await tx.execute(query)).all()]

    async def attempts_told(self, run_id: str, node: str) -> list[Mapping[str, Any]]:
        """See the port."""
        query = select(run_events.c.data).where(run_events.c.run_id == run_id, run_events.c.kind == "attempt_finished")
        ordered = query.where(run_events.c.data["node"].astext == node).order_by(run_events.c.sequence)
        async with self._database.read() as tx:
            return list((await tx.execute(ordered)).scalars())


_LETTERS = select(dead_letters.c.document, dead_letters.c.redriven_at, dead_letters.c.redrive_reason)


def _letter(row: Any) -> DeadLetter:
    told = {"redriven_at": row.redriven_at and row.redriven_at.isoformat(), "redrive_reason": row.redrive_reason}
    return codec.letter_from_document({**row.document, **told})
