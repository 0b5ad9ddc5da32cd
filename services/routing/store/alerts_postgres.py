"""Alerts in PostgreSQL: one open row for each dedupe key."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, and_, func, literal, or_, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.store.database import Database
from services.routing.domain.measure import continued
from services.routing.ports.alerts import Alert, AlertQuery
from services.routing.store.paging import Place, place_in, token_after
from services.routing.store.tasks_rows import alert_of, alert_row, measure_json, measure_of
from services.routing.store.tasks_tables import alerts

SEEN = alerts.c.acknowledged_at.is_not(None)


class PostgresAlerts:
    """`AlertStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def raise_alerts(self, raised: Sequence[Alert]) -> None:
        """See the port."""
        if raised:
            async with self._database.unit() as tx:
                await write_alerts(tx, raised)

    async def alerts(self, query: AlertQuery) -> tuple[tuple[Alert, ...], str]:
        """See the port."""
        wanted = (
            select(alerts)
            .order_by(SEEN, alerts.c.consequence, alerts.c.created_at.desc(), alerts.c.id.desc())
            .limit(query.page_size + 1)
        )
        after = place_in(query.page_token)
        if after is not None:
            wanted = wanted.where(_behind(after))
        if query.kind:
            wanted = wanted.where(alerts.c.kind == query.kind)
        if query.subject:
            wanted = wanted.where(alerts.c.subject == query.subject)
        if query.open_only:
            wanted = wanted.where(alerts.c.acknowledged_at.is_(None))
        async with self._database.read() as tx:
            rows = list((await tx.execute(wanted)).mappings())
        page = rows[: query.page_size]
        token = ""
        if len(rows) > len(page):
            last = page[-1]
            token = token_after((bool(last["acknowledged_at"]), last["consequence"], last["created_at"], last["id"]))
        return tuple(alert_of(row) for row in page), token

    async def acknowledge(self, alert_id: str, now: datetime) -> Alert | None:
        """See the port."""
        seen = (
            update(alerts)
            .where(alerts.c.id == alert_id)
            .values(acknowledged_at=func.coalesce(alerts.c.acknowledged_at, now))
            .returning(alerts)
        )
        async with self._database.unit() as tx:
            row = (await tx.execute(seen)).mappings().one_or_none()
        return None if row is None else alert_of(row)


async def write_alerts(tx: AsyncConnection, raised: Sequence[Alert]) -> None:
    """New ones, and a count for each whose key is open; in the order of their keys, so that no two writers deadlock."""
    for alert in sorted(raised, key=lambda item: item.key):
        row = insert(alerts).values(alert_row(alert))
        again = row.on_conflict_do_update(
            index_elements=[alerts.c.key],
            index_where=text("acknowledged_at IS NULL"),
            set_={"count": alerts.c.count + 1, "message": row.excluded.message, "cause": row.excluded.cause},
            where=alerts.c.cause != row.excluded.cause if alert.once_a_cause else None,
        ).returning(alerts.c.id, alerts.c.measure)
        kept = (await tx.execute(again)).one_or_none()
        if kept is not None and alert.measure is not None and kept.id != alert.id:  # the row is ours until the end
            measure = measure_json(continued(measure_of(kept.measure), alert.measure))
            await tx.execute(update(alerts).where(alerts.c.id == kept.id).values(measure=measure))


def _behind(place: Place) -> ColumnElement[bool]:
    """Rows after that place: two columns rise, two fall."""
    seen, consequence, at, row_id = place
    here = func.row(SEEN, alerts.c.consequence)
    then = func.row(literal(seen), literal(consequence))
    older = func.row(alerts.c.created_at, alerts.c.id) < func.row(at, row_id)
    return or_(here > then, and_(here == then, older))
