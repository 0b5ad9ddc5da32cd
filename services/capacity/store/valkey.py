"""Capacity in Valkey or Redis: leases, windows, pace and the health last heard; one script, the server's time only.

Laws of this file:
- what the catalogue declares is durable elsewhere (`declared`, the PostgreSQL store); here is what leases last for;
- every decision is the script's, in one atomic run a group; it answers as `services.capacity.domain` does;
- a server that is not the one that made the memory (restarted, failed over, emptied) is taught the declared levels anew
  and for one longest time to live only renews (CAP-9): leases that it does not know are learned from who renews them;
- no answer is Fault `governance_backend_down`; nobody is admitted (CAP-12), nothing is sent twice.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, RedisError, ResponseError

from libs.faults.fault import Fault
from libs.store.gathering import Gathering
from services.capacity.domain import holding
from services.capacity.domain.leases import Lease, Request, lease_of
from services.capacity.domain.ledger import WINDOW, Refusal
from services.capacity.domain.levels import HealthLimit, Kind, Level, Subject, Usage
from services.capacity.domain.pacing import SILENT, Feedback, Pace
from services.capacity.ports import CapacityStore, Figure, Renewal
from services.capacity.store import verdicts
from services.capacity.store.verdicts import MICROSECOND, Known, Return

VERSION = 1  # of the script and of what it keeps: another version is another memory
SCRIPT = (Path(__file__).parent / "ledger.lua").read_text()
SERVER_TIME = "redis.call('TIME')"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Refusals of the server that are not our bug: it is starting, a replica, full, without a majority, busy.
AWAY = ("LOADING", "READONLY", "OOM", "MISCONF", "CLUSTERDOWN", "MASTERDOWN", "BUSY", "NOREPLICAS", "TRYAGAIN")
NOT_HELD, DONE = 0, 1  # what the script says where there is nothing more to say

Ask = Request | Return
Answer = Lease | Refusal | Known | None


def connect(url: str, timeout_s: float) -> Redis:
    """A client that waits so long for an answer and never asks twice."""
    return Redis.from_url(
        url, socket_timeout=timeout_s, socket_connect_timeout=timeout_s, retry=Retry(NoBackoff(), 0), protocol=3
    )


class ValkeyCapacityStore:
    """ports.CapacityStore over one server or one slot of a cluster.

    `declared` keeps what the catalogue says; `longest_ttl` is the longest time to live that anybody may ask for, and
    so how long a server without memory learns. `time_lua` is an expression for the time; only tests name another.
    """

    def __init__(
        self,
        client: Redis,
        declared: CapacityStore,
        longest_ttl: timedelta,
        prefix: str = "pointsman",
        time_lua: str = SERVER_TIME,
    ) -> None:
        self._client = client
        self._declared = declared
        self._longest_ttl = longest_ttl
        self._learning = max(longest_ttl, WINDOW)  # the windows were lost as well
        self._prefix = f"{{{prefix}:capacity:{VERSION}}}:"
        self._script = SCRIPT.replace(SERVER_TIME, time_lua)
        self._sha = ""
        self._given: dict[str, Lease] = {}  # what this process was given: it teaches a server that forgot
        self._now = EPOCH  # the server's time as last told
        self._group: Gathering[Ask, Answer] = Gathering(self._decide, lambda ask: ask.lease_id)

    async def reserve(self, request: Request) -> Lease | Refusal:
        """Decide, together with whoever else waits."""
        if request.ttl > self._longest_ttl:
            raise Fault.invalid(("/ttl", f"must be at most {self._longest_ttl.total_seconds():g} seconds"))
        while True:
            answer = await self._group.ask(request)
            if not isinstance(answer, Known):
                assert answer is not None, "a reservation is admitted or refused"
                return answer
            found = await self._run({"op": "known", "id": request.lease_id})
            if found.get("held"):  # else it was forgotten between the two looks
                return holding.repeated(_lease(found["held"]), request, _time(found["now"]))

    async def release(
        self, lease_id: str, holder: str, used_tokens: int | None, feedback: Feedback = SILENT
    ) -> Lease | None:
        """Give it back, together with whoever else waits."""
        answer = await self._group.ask(Return(lease_id, holder, used_tokens, feedback))
        assert not isinstance(answer, (Refusal, Known)), "a release is not refused"
        return answer

    async def _decide(self, asks: Sequence[Ask]) -> Sequence[Answer | Exception]:
        """One run of the script."""
        returns = [(nth, ask) for nth, ask in enumerate(asks) if isinstance(ask, Return)]
        requests = [(nth, ask) for nth, ask in enumerate(asks) if not isinstance(ask, Return)]
        reply = await self._run(
            {
                "op": "decide",
                "releases": [
                    verdicts.release_to_script(nth, back) | {"full": back.lease_id not in self._given}
                    for nth, back in returns
                ],
                "reserves": [verdicts.reserve_to_script(nth, request) for nth, request in requests],
            }
        )
        answers: list[Answer | Exception] = [None] * len(asks)
        verdict = iter(reply["answers"])
        now = self._now = _time(reply["now"])
        for nth, back in returns:
            answers[nth] = self._returned(back, next(verdict), now)
        for nth, request in requests:
            answers[nth] = self._reserved(request, next(verdict), now)
        return answers

    def _returned(self, back: Return, verdict: Any, now: datetime) -> Lease | None:
        if verdict == NOT_HELD:
            return None
        given = self._given.pop(back.lease_id, None) or _lease(verdict)
        return replace(given, ended_at=now, released=True, used_tokens=back.used_tokens)

    def _reserved(self, request: Request, verdict: Any, now: datetime) -> Lease | Refusal | Fault | Known:
        if verdict == DONE:
            lease = self._given[request.lease_id] = lease_of(request, now)
            return lease
        return verdicts.reserved(request, verdict, _time(verdict["at"]) if "at" in verdict else None)

    async def renew(
        self, holder: str, lease_ids: Sequence[str], ttl: timedelta, taught: Sequence[Lease] = ()
    ) -> Renewal:
        """Prolong what is held, all in one run; what the server forgot it learns while it learns."""
        if ttl > self._longest_ttl:
            raise Fault.invalid(("/ttl", f"must be at most {self._longest_ttl.total_seconds():g} seconds"))
        known = {lease.id: _taught(lease) for lease in taught if lease.holder == holder}
        known |= {name: _taught(self._given[name]) for name in lease_ids if name in self._given}
        asked = {"op": "renew", "ids": lease_ids, "holder": holder, "ttl": ttl // MICROSECOND, "leases": known}
        reply = await self._run(asked)
        done = frozenset(reply["renewed"])
        for name in lease_ids:
            lease = self._given.pop(name, None)
            if lease is not None and name in done:
                self._given[name] = replace(lease, expires_at=_time(reply["expires"]))
        renewed = tuple(name for name in lease_ids if name in done)
        return Renewal(renewed, tuple(name for name in lease_ids if name not in done))

    async def figures(self) -> list[Figure]:
        """Every declared level, in one run."""
        reply = await self._run({"op": "figures"})
        return sorted((_figure(item) for item in reply["figures"]), key=lambda figure: figure.level.subject)

    async def leases(self) -> list[Lease]:
        """Live leases, oldest first."""
        reply = await self._run({"op": "leases"})
        return sorted((_lease(item) for item in reply["leases"]), key=lambda lease: (lease.reserved_at, lease.id))

    async def apply_levels(self, revision: int, levels: Sequence[Level]) -> int:
        """Declare levels, durably first."""
        await self._run({"op": "known", "id": ""})  # a server without memory boots before the first declaration
        in_force = await self._declared.apply_levels(revision, levels)
        if in_force == revision:
            await self._run(_applied(revision, levels))
        return in_force

    async def hear(self, health: Mapping[Subject, HealthLimit]) -> None:
        """Keep what is newer, here and where it is durable."""
        await self._declared.hear(health)
        told = [{"kind": int(subject.kind), "id": subject.id, "view": _view(health[subject])} for subject in health]
        await self._run({"op": "hear", "health": told})

    async def catalog_revision(self) -> int:
        """The revision in force."""
        return await self._declared.catalog_revision()

    async def sweep(self) -> frozenset[Subject]:
        """End what lapsed, forget what ended long ago."""
        reply = await self._run({"op": "sweep"})
        # Other processes renew and release what was given here; what has lapsed since by our book teaches nobody.
        self._given = {name: lease for name, lease in self._given.items() if lease.expires_at > self._now}
        return frozenset(Subject(Kind(kind), name) for kind, name in reply["freed"])

    async def close(self) -> None:
        """Answer who waits, close the connections."""
        await self._group.close()
        await self._client.aclose()
        await self._declared.close()

    async def _run(self, ask: Mapping[str, Any]) -> Any:
        reply = await self._evaluate(ask)
        if reply.get("boot") is False:
            await self._boot()
            reply = await self._evaluate(ask)
            if reply.get("boot") is False:
                raise Fault.of("governance_backend_down", "the server changed while it was taught")
        return reply

    async def _boot(self) -> None:
        """Teach a server without memory. One that never was told of a level has nothing to learn."""
        revision = await self._declared.catalog_revision()
        levels = [figure.level for figure in await self._declared.figures()]
        await self._evaluate({"op": "boot", "learn": self._learning // MICROSECOND if revision else 0})
        if revision:
            await self._evaluate(_applied(revision, levels))

    async def _evaluate(self, ask: Mapping[str, Any]) -> Any:
        payload = msgspec.msgpack.encode(ask)
        try:
            if not self._sha:
                self._sha = await self._client.script_load(self._script)
            try:
                reply = await self._client.evalsha(self._sha, 1, self._prefix, payload)
            except NoScriptError:  # a new server: it has run nothing of this yet
                self._sha = await self._client.script_load(self._script)
                reply = await self._client.evalsha(self._sha, 1, self._prefix, payload)
        except ResponseError as error:
            if str(error).startswith(AWAY):
                raise Fault.of("governance_backend_down", "the server of leases cannot serve now") from error
            raise
        except (RedisError, OSError, TimeoutError) as error:
            raise Fault.of("governance_backend_down", "the server of leases does not answer") from error
        return msgspec.msgpack.decode(reply)


def _applied(revision: int, levels: Sequence[Level]) -> dict[str, Any]:
    return {
        "op": "apply",
        "revision": revision,
        "levels": [
            {
                "kind": int(level.subject.kind),
                "id": level.subject.id,
                "channel": level.channel_id,
                "slots": level.concurrency,
                "rpm": level.requests_per_minute,
                "tpm": level.tokens_per_minute,
                **({"view": _view(level.health)} if level.health else {}),
            }
            for level in levels
        ],
    }


def _view(health: HealthLimit) -> tuple[int, int, int | None]:
    return health.epoch, health.revision, health.limit


def _time(microseconds: int) -> datetime:
    return EPOCH + microseconds * MICROSECOND


def _lease(item: Mapping[str, Any]) -> Lease:
    return Lease(
        id=item["id"],
        holder=item["holder"],
        kind=item["kind"],
        channel_id=item["channel"],
        supply_id=item["supply"],
        channel_epoch=item["channel_epoch"],
        supply_epoch=item["supply_epoch"],
        tokens=item["tokens"],
        reserved_at=_time(item["reserved"]),
        expires_at=_time(item["expires"]),
        ended_at=_time(item["ended"]) if item["ended"] else None,
        used_tokens=None if item["used"] is False else item["used"],
    )


def _taught(lease: Lease) -> dict[str, Any]:
    """A lease as the script keeps it."""
    return {
        "id": lease.id,
        "holder": lease.holder,
        "kind": lease.kind,
        "channel": lease.channel_id,
        "supply": lease.supply_id,
        "channel_epoch": lease.channel_epoch,
        "supply_epoch": lease.supply_epoch,
        "tokens": lease.tokens,
        "reserved": (lease.reserved_at - EPOCH) // MICROSECOND,
        "expires": (lease.expires_at - EPOCH) // MICROSECOND,
    }


def _figure(item: Mapping[str, Any]) -> Figure:
    def moment(name: str) -> datetime | None:
        return _time(item[name]) if name in item else None

    health = None
    if "rev" in item:
        health = HealthLimit(item.get("epoch") or 0, item.get("rev") or 0, item.get("cap"))
    level = Level(
        subject=Subject(Kind(item["kind"]), item["id"]),
        channel_id=item["channel"],
        concurrency=item.get("slots") or 0,
        requests_per_minute=item.get("rpm") or 0,
        tokens_per_minute=item.get("tpm") or 0,
        health=health,
        pace=Pace(item.get("pace"), item.get("ceiling") or 0, moment("cut"), moment("freeze")),
    )
    oldest = moment("oldest_request"), moment("oldest_overuse")
    used = Usage(item["live"], item["present"], item["requests"], item["tokens"], *oldest)
    return Figure(level, used)
