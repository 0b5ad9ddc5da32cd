"""Memos in PostgreSQL, written in the transaction of the events that make them or take them back."""

from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from services.runs.domain.desks import DeskChanges
from services.runs.domain.memos import Memo
from services.runs.store import codec
from services.runs.store.tables import memos


async def write_memos(tx: AsyncConnection, tenant: str, changes: DeskChanges) -> None:
    """Forget, then keep; in the order of the hashes, so that two writers never wait for each other in a circle."""
    for input_hash in changes.forgotten:
        await tx.execute(delete(memos).where(memos.c.tenant == tenant, memos.c.input_hash == input_hash))
    for memo in changes.memos:
        row: dict[str, Any] = {"tenant": memo.tenant, "input_hash": memo.input_hash, "run_id": memo.run_id}
        row["document"] = codec.memo_to_document(memo)
        once = insert(memos).values(row)
        await tx.execute(once.on_conflict_do_update(index_elements=["tenant", "input_hash"], set_=row))


async def read_memo(tx: AsyncConnection, tenant: str, input_hash: str, besides: str) -> Memo | None:
    """The memo of that input, unless that Run itself made it."""
    query = select(memos.c.document).where(memos.c.tenant == tenant, memos.c.input_hash == input_hash)
    document = (await tx.execute(query.where(memos.c.run_id != besides))).scalar_one_or_none()
    return codec.memo_from_document(document) if document is not None else None
