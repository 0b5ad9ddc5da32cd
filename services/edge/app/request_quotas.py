"""Requests per minute, by tenant (AUTH-2).

Counted here, in this process; what other replicas have let in is learnt once a second, in one statement for all
tenants. So a request costs no statement, and a tenant may pass its quota by what the other replicas let in during one
second: see decision 26. Nothing happens while nobody asks: what is known is renewed by the first request behind its
time, which does not wait for it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from libs.faults.fault import Fault
from libs.kernel.world import World
from services.edge.domain.quotas import Quotas, Standing, minute_of, standing, used_up
from services.edge.ports import Catalog, RequestCounts

LEARN_S = 5.0
EXCHANGE_S = 1.0

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Count:
    """Of one tenant in this minute: let in here, and elsewhere as far as is known."""

    here: int = 0
    elsewhere: int = 0


class RequestQuotas:
    """The counts of this process. A quota is in force `LEARN_S` seconds after the catalogue names it."""

    def __init__(self, catalog: Catalog, counts: RequestCounts, world: World) -> None:
        self._catalog = catalog
        self._counts = counts
        self._world = world
        self._replica = ""
        self._quotas: Mapping[str, Quotas] = {}
        self._learning = _Renewal(self._learn, LEARN_S)
        self._exchanging = _Renewal(self._exchange, EXCHANGE_S)
        self._minute = 0
        self._used: dict[str, _Count] = {}

    async def admit(self, tenant: str) -> tuple[Standing | None, Fault | None]:
        """(how the tenant stands with this request counted, None where it has no quota; why it is not let in).

        The refusal is quota_exceeded. While the catalogue cannot be read the quotas that were known last hold; a
        process that has never read it lets everybody in.
        """
        now_s = self._world.clock.monotonic()
        if self._learning.due(now_s):
            first = self._learning.begin(now_s)
            if not self._learning.succeeded:
                await asyncio.shield(first)
        quotas = self._quotas.get(tenant)
        if quotas is None or not quotas.rpm:
            return None, None
        return self._counted(tenant, quotas.rpm, now_s)

    def _counted(self, tenant: str, limit: int, now_s: float) -> tuple[Standing, Fault | None]:
        now = self._world.clock.now()
        minute = minute_of(now)
        if minute != self._minute:
            self._minute = minute
            self._used.clear()
        count = self._used.setdefault(tenant, _Count())
        if self._exchanging.due(now_s):
            self._exchanging.begin(now_s)
        used = count.here + count.elsewhere
        if used >= limit:
            stands = standing(limit, used, now)
            return stands, used_up(stands)
        count.here += 1
        return standing(limit, used + 1, now), None

    async def close(self) -> None:
        """Give up what is being asked."""
        await self._learning.close()
        await self._exchanging.close()

    async def _learn(self) -> None:
        self._quotas = await self._catalog.quotas()

    async def _exchange(self) -> None:
        minute = self._minute
        self._replica = self._replica or self._world.ids.ulid()
        here = {tenant: count.here for tenant, count in self._used.items() if count.here}
        elsewhere = await self._counts.exchange(self._replica, minute, here)
        if minute == self._minute:
            for tenant, count in self._used.items():
                count.elsewhere = elsewhere.get(tenant, count.elsewhere)


class _Renewal:
    """Something that is asked for anew when it is `after_s` old, by one task at a time, and may fail."""

    def __init__(self, renew: Callable[[], Awaitable[None]], after_s: float) -> None:
        self._renew = renew
        self._after_s = after_s
        self._due_at = float("-inf")
        self._task: asyncio.Task[None] | None = None
        self.succeeded = False

    def due(self, now_s: float) -> bool:
        """Whether it is time, or is being asked for the first time."""
        if self._task is not None and not self._task.done():
            return not self.succeeded
        return now_s >= self._due_at

    def begin(self, now_s: float) -> "asyncio.Task[None]":
        """The task that asks: the one under way, or a new one."""
        if self._task is None or self._task.done():
            self._due_at = now_s + self._after_s
            self._task = asyncio.create_task(self._once())
        return self._task

    async def _once(self) -> None:
        try:
            await self._renew()
        except Fault as fault:
            log.warning("quotas_not_renewed", extra={"code": fault.code})
        else:
            self.succeeded = True

    async def close(self) -> None:
        """Give it up."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
