"""Budgets in PostgreSQL: what waits in one turn of the loop is one statement and one commit, on the server's time.

Laws of this file:
- the order of locks is by `number`: parents before children, one order over all trees;
- Holds, what enlarges them, settlements and releases are decided by the function `move_group` of the schema, which
  answers as `domain.ledger` does; the differential test holds the two together, step by step;
- the words of every fault are the domain's;
- the ledger is proven by the function `prove_ledger` from checkpoint to checkpoint, and whole by the view
  `ledger_mismatch`; both find what `domain.checking` does, the former what came since.
"""

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, cast

from sqlalchemy import delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.faults.fault import Fault
from libs.store.database import Database
from libs.store.gathering import Gathering
from libs.store.lane import fetch_within
from services.cost_quote.domain import ledger, limits
from services.cost_quote.domain.budgets import (
    Amounts,
    Asked,
    Budget,
    ChangeAsk,
    Declaration,
    EnlargeAsk,
    Entry,
    Hold,
    HoldAsk,
    HoldState,
    Mismatch,
    Moved,
    Refusal,
    Refused,
    ReleaseAsk,
    SettleAsk,
)
from services.cost_quote.store import tables
from services.cost_quote.store.budget_rows import (
    budget_of,
    columns_of,
    columns_of_amounts,
    columns_of_entry,
    entry_of,
    hold_of,
)

Ask = HoldAsk | EnlargeAsk | SettleAsk | ReleaseAsk
MOVE = "SELECT nth, answer FROM move_group($1::jsonb) ORDER BY nth"
WHOLE = "SELECT budget_id, what FROM ledger_mismatch ORDER BY number, what"
SINCE = "SELECT budget_id, what FROM prove_ledger($1) ORDER BY number, what"
LOOK_S = 55.0
"""A look may read the whole ledger, the first one does. Shorter than those who ask wait for it."""


class PostgresBudgets:
    """Implements `ports.Budgets` over one Database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lane = database.lane(by_index=True)
        self._group: Gathering[Ask, Moved | Refused] = Gathering(self._move, lambda ask: ask.hold_id)

    async def create(self, declaration: Declaration) -> Budget:
        """See the port."""
        table = tables.budget
        async with self._database.unit() as tx:
            known = await self._one(tx, declaration.id)
            if known is None:
                parent = await self._one(tx, declaration.parent_id)
                now = (await tx.execute(select(func.server_time()))).scalar_one()
                values = columns_of(limits.declared(declaration, parent, now))
                made = await tx.execute(insert(table).values(values).on_conflict_do_nothing().returning(table))
                row = made.mappings().one_or_none()
                if row is not None:
                    return budget_of(row)
                known = await self._one(tx, declaration.id)  # another made it meanwhile
        assert known is not None, "budgets are never deleted"
        return limits.same_again(known, declaration)

    async def change(self, ask: ChangeAsk) -> Budget:
        """See the port."""
        table, entries = tables.budget, tables.entry
        async with self._database.unit() as tx:
            locked = select(table).where(table.c.id == ask.budget_id).with_for_update()
            row = (await tx.execute(locked)).mappings().one_or_none()
            if row is None:
                raise ledger.unknown_budget(ask.budget_id)
            if ask.request_id:
                same = (entries.c.budget_id == ask.budget_id) & (entries.c.request_id == ask.request_id)
                before = (await tx.execute(select(entries).where(same))).mappings().one_or_none()
                if before is not None:
                    return limits.changed_again(budget_of(row), entry_of(before), ask)
            now = (await tx.execute(select(func.server_time()))).scalar_one()
            budget, entry = limits.changed(budget_of(row), ask, now)
            values = {
                **columns_of_amounts("hard_", budget.hard),
                **columns_of_amounts("soft_", budget.soft),
                **{
                    name: getattr(budget, name)
                    for name in ("deadline_at", "soft_limit_at", "soft_limit_by", "revision")
                },
            }
            await tx.execute(update(table).where(table.c.id == budget.id).values(values))
            await tx.execute(insert(entries).values(columns_of_entry(entry)))
            return budget

    async def hold(self, ask: HoldAsk) -> Moved | Refused:
        """See the port."""
        return await self._group.ask(ask)

    async def enlarge(self, ask: EnlargeAsk) -> Moved | Refused:
        """See the port."""
        return await self._group.ask(ask)

    async def settle(self, ask: SettleAsk) -> Moved:
        """See the port. (A settlement is never refused.)"""
        return cast("Moved", await self._group.ask(ask))

    async def release(self, ask: ReleaseAsk) -> Hold:
        """See the port."""
        return cast("Moved", await self._group.ask(ask)).hold

    async def get(self, budget_id: str) -> Budget | None:
        """See the port."""
        async with self._database.read() as tx:
            return await self._one(tx, budget_id)

    async def find(self, tenant: str, root_id: str, after: int, most: int) -> Sequence[Budget]:
        """See the port."""
        table = tables.budget
        wanted = select(table).where(table.c.number > after).order_by(table.c.number).limit(most)
        if tenant:
            wanted = wanted.where(table.c.tenant == tenant)
        if root_id:
            wanted = wanted.where(table.c.path.contains([root_id]))
        async with self._database.read() as tx:
            return [budget_of(row) for row in (await tx.execute(wanted)).mappings()]

    async def entries(self, budget_id: str, after: int, most: int) -> Sequence[Entry]:
        """See the port."""
        table = tables.entry
        mine = (table.c.budget_id == budget_id) & (table.c.sequence > after)
        async with self._database.read() as tx:
            rows = await tx.execute(select(table).where(mine).order_by(table.c.sequence).limit(most))
            return [entry_of(row) for row in rows.mappings()]

    async def open_holds(self, prefix: str, after: str, most: int) -> Sequence[Hold]:
        """See the port."""
        table = tables.hold
        name = table.c.id.collate("C")  # the order of the index, whatever the database's own
        wanted = select(table).where(table.c.state == HoldState.HELD.value, name > after, name >= prefix)
        wanted = wanted.where(func.starts_with(table.c.id, prefix)).order_by(name).limit(most)
        async with self._database.read() as tx:
            return [hold_of(row) for row in (await tx.execute(wanted)).mappings()]

    async def mismatches(self, *, whole: bool = False) -> Sequence[Mismatch]:
        """See the port."""
        if not whole:
            return await self._since_checkpoints(None)
        async with self._database.read() as tx:
            found = _mismatches(await fetch_within(tx, WHOLE, limit_s=LOOK_S))
        await self._forget({mismatch.budget_id for mismatch in found})
        return found

    async def reread(self, age: timedelta) -> Sequence[Mismatch] | None:
        """See the port. The checkpoint stays where it is until the look has ended: one that takes too long leaves the
        others what was proven."""
        table = tables.checkpoint
        due = table.c.whole_at < func.server_time() - age
        async with self._database.read() as tx:
            oldest = select(table.c.budget_id).where(due).order_by(table.c.whole_at).limit(1)
            budget_id = (await tx.execute(oldest)).scalar_one_or_none()
        if budget_id is None:
            return None
        found = await self._since_checkpoints(budget_id)
        if any(mismatch.budget_id == budget_id for mismatch in found):
            await self._forget({budget_id})
            return found
        async with self._database.unit() as tx:
            proven = update(table).where(table.c.budget_id == budget_id).values(whole_at=func.server_time())
            await tx.execute(proven)
        return found

    async def _since_checkpoints(self, anew: str | None) -> Sequence[Mismatch]:
        async with self._database.unit() as tx:
            return _mismatches(await fetch_within(tx, SINCE, anew, limit_s=LOOK_S))

    async def _forget(self, wrong: set[str]) -> None:
        """Without a checkpoint a budget is read from its first entry, by every look until nothing is wrong with it. One
        that is under way meanwhile may put a checkpoint back; the next that reads anew takes it away again."""
        for budget_id in sorted(wrong):
            async with self._database.unit() as tx:
                await tx.execute(delete(tables.checkpoint).where(tables.checkpoint.c.budget_id == budget_id))

    async def close(self) -> None:
        """See the port."""
        await self._group.close()
        await self._lane.close()

    async def _move(self, asks: Sequence[Ask]) -> Sequence[Moved | Refused | Exception]:
        """One statement, one commit."""
        told = json.dumps([_told(nth, ask) for nth, ask in enumerate(asks)])
        rows = await self._lane.fetch(MOVE, told)
        return [_answer(ask, row["answer"]) for ask, row in zip(asks, rows, strict=True)]

    async def _one(self, tx: AsyncConnection, budget_id: str) -> Budget | None:
        row = (await tx.execute(select(tables.budget).where(tables.budget.c.id == budget_id))).mappings().one_or_none()
        return budget_of(row) if row else None


def _mismatches(rows: Sequence[Any]) -> Sequence[Mismatch]:
    return [Mismatch(row["budget_id"], row["what"]) for row in rows]


def _told(nth: int, ask: Ask) -> dict[str, Any]:
    """An ask as `move_group` reads it."""
    if isinstance(ask, ReleaseAsk):
        said = {"op": "release", "words": ask.reason, "currency": "", "correct": False}
        return {"nth": nth, "id": ask.hold_id, **said}
    asked = ask.asked
    figures = {"cost": asked.cost, "currency": asked.currency, "attempts": asked.attempts, "worth": dict(asked.worth)}
    told = {"nth": nth, "id": ask.hold_id, "minutes": asked.review_minutes, **figures}
    if isinstance(ask, HoldAsk):
        return {**told, "op": "hold", "budget": ask.budget_id, "words": ask.subject}
    if isinstance(ask, EnlargeAsk):
        return {**told, "op": "enlarge", "words": ask.reason, "correct": False}
    return {**told, "op": "settle", "words": ask.reason, "correct": ask.correct}


def _answer(ask: Ask, said: dict[str, Any]) -> Moved | Refused | Exception:
    """What the function said, in the words of the domain."""
    match said["outcome"]:
        case "moved":
            return Moved(hold_of(said["hold"]), tuple(said["told"]), tuple(said["soft"]))
        case "refused":
            assert isinstance(ask, HoldAsk | EnlargeAsk), "only what reserves is refused"
            more = ask.asked if isinstance(ask, HoldAsk) else Asked()  # what is added is money alone
            asked = Amounts(int(said["cost"]), more.attempts, more.review_minutes)
            refusal = Refusal(budget_of(said["budget"]), said["dimension"], asked)
            return Refused(refusal, ledger.at_soft([budget_of(row) for row in said["branch"]]))
        case "known":
            return _known(ask, hold_of(said["hold"]), [budget_of(row) for row in said["branch"]])
        case "no_rate":
            assert not isinstance(ask, ReleaseAsk), "a release names no money"
            return ledger.no_rate(ask.asked.currency, said["currency"])
        case "no_budget":
            assert isinstance(ask, HoldAsk), "every known Hold has its budget"
            return ledger.unknown_budget(ask.budget_id)
        case _:
            return ledger.unknown_hold(ask.hold_id)


def _known(ask: Ask, hold: Hold, branch: list[Budget]) -> Moved | Exception:
    try:
        if isinstance(ask, HoldAsk):
            return ledger.taken_again(hold, branch, ask)
        if isinstance(ask, EnlargeAsk):
            return ledger.standing(hold, branch)
        if isinstance(ask, SettleAsk):
            return ledger.settled_again(hold, branch, ask)
    except Fault as fault:
        return fault
    return Moved(hold)
