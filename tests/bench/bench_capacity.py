"""What capacity costs beside the bare statement, on one hot Channel, in one run on one machine (PRF-3).

    python -m tests.bench.bench_capacity [--seconds 2] [--json]

A pair is one reservation and its release. The floor in PostgreSQL is what one would write by hand without gates,
leases that lapse, health or windows: a guarded update of two counters and one lease row, in one statement with a commit
of its own. Ours runs with all nine gates on (three levels, three gates each) and the tokens settled. Every store keeps
its promises: PostgreSQL waits for the disk.

The last two columns are processor time per pair at the highest flight, of this process and of the server with all its
processes: unlike the rates they hardly depend on what else the machine does. Where there is no /proc they are 0.
"""

import argparse
import asyncio
import itertools
import json
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg

from libs.host.embedded_postgres import EmbeddedPostgres
from libs.store.database import Database
from libs.store.gathering import Gathering
from libs.store.migrations import migrate
from services.capacity.compose import VERSIONS
from services.capacity.domain.leases import Lease, Request
from services.capacity.domain.levels import HealthLimit, Kind, Level, Subject
from services.capacity.ports import CapacityStore
from services.capacity.store.memory import MemoryCapacityStore
from services.capacity.store.postgres import PostgresCapacityStore
from services.capacity.store.valkey import ValkeyCapacityStore, connect
from tests.support import processes
from tests.support.valkey import ValkeyServer
from tests.support.worlds import SteeredClock

FLIGHTS = (1, 16, 64)
POOL = 16
MUCH = 1_000_000_000
VIEW = HealthLimit(1, 1, None)
TTL = timedelta(seconds=60)
Step = Callable[[str], Awaitable[object]]

BARE_TABLES = """
CREATE SCHEMA bare;
CREATE TABLE bare.counter (id text PRIMARY KEY, used int NOT NULL, most int NOT NULL) WITH (fillfactor = 50);
CREATE TABLE bare.lease (
  id text PRIMARY KEY, channel_id text NOT NULL, supply_id text NOT NULL, expires_at timestamptz
);
INSERT INTO bare.counter VALUES ('a', 0, 1000000), ('a/x', 0, 1000000);
"""
# By the index the two rows are locked in one order; in the order of a scan the bare statements meet in deadlocks.
ORDERED = {"enable_seqscan": "off", "enable_bitmapscan": "off"}
BARE_RESERVE = """
WITH taken AS (
  UPDATE bare.counter SET used = used + 1 WHERE id IN ('a', 'a/x') AND used < most RETURNING id
)
INSERT INTO bare.lease SELECT $1, 'a', 'a/x', clock_timestamp() + interval '60 seconds'
WHERE (SELECT count(*) FROM taken) = 2
"""
BARE_RELEASE = """
WITH gone AS (DELETE FROM bare.lease WHERE id = $1 RETURNING id)
UPDATE bare.counter SET used = used - 1 WHERE id IN ('a', 'a/x') AND EXISTS (SELECT 1 FROM gone)
"""
# Two sorted sets of leases, trimmed, counted, added to: what one would write by hand.
BARE_SCRIPT = """
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
for _, key in ipairs(KEYS) do
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
  if redis.call('ZCARD', key) >= 1000000 then return 0 end
end
for _, key in ipairs(KEYS) do redis.call('ZADD', key, now + 60000000, ARGV[1]) end
return 1
"""
BARE_RETURN = "local n = 0; for _, key in ipairs(KEYS) do n = redis.call('ZREM', key, ARGV[1]) end; return n"


@dataclass
class Row:
    """One line of the table. `pairs` a second by callers in flight; `idle_us` is the median of a lone reservation."""

    name: str
    idle_us: float
    pairs: dict[int, float]
    client_us: float = 0.0
    server_us: float = 0.0


async def idle(reserve: Step, release: Step, seconds: float, prefix: str) -> float:
    """The median time of a reservation, one at a time, in microseconds."""
    times = []
    end = time.perf_counter() + seconds
    for number in itertools.count():
        begun = time.perf_counter()
        if begun > end:
            return statistics.median(times) * 1e6
        await reserve(f"{prefix}-idle-{number}")
        times.append(time.perf_counter() - begun)
        await release(f"{prefix}-idle-{number}")
    raise AssertionError("counted to the end")


async def pairs(reserve: Step, release: Step, seconds: float, flight: int, prefix: str) -> float:
    """Pairs a second with so many callers at once."""
    end = time.perf_counter() + seconds
    made = 0

    async def caller(name: str) -> None:
        nonlocal made
        for number in itertools.count():
            if time.perf_counter() > end:
                return
            lease_id = f"{name}-{number}"
            await reserve(lease_id)
            await release(lease_id)
            made += 1

    begun = time.perf_counter()
    await asyncio.gather(*(caller(f"{prefix}-{flight}-{number}") for number in range(flight)))
    return made / (time.perf_counter() - begun)


def processor_s(root: int) -> float:
    """Processor time that a server's processes have used so far, in seconds."""
    ticks = 0
    for pid in processes.tree(root):
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


async def measure(name: str, reserve: Step, release: Step, seconds: float, server: int) -> Row:
    """One row, warmed up; `server` is the server's first process."""
    await pairs(reserve, release, 0.3, 8, f"{name}-warm")
    row = Row(name, await idle(reserve, release, seconds, name), {})
    for flight in FLIGHTS:
        before = time.process_time(), processor_s(server), time.perf_counter()
        row.pairs[flight] = await pairs(reserve, release, seconds, flight, name)
        made = row.pairs[flight] * (time.perf_counter() - before[2])
        row.client_us = (time.process_time() - before[0]) / made * 1e6
        row.server_us = (processor_s(server) - before[1]) / made * 1e6
    return row


async def bare_postgres(url: str, seconds: float, server: int) -> Row:
    """The floor: a statement and a commit each."""
    pool: Any = await asyncpg.create_pool(url, min_size=POOL, max_size=POOL, reset=no_reset, server_settings=ORDERED)
    await pool.execute(BARE_TABLES)

    async def reserve(lease_id: str) -> None:
        assert await pool.execute(BARE_RESERVE, lease_id) == "INSERT 0 1"

    async def release(lease_id: str) -> None:
        assert await pool.execute(BARE_RELEASE, lease_id) == "UPDATE 2"

    row = await measure("PostgreSQL: bare statement, a commit each", reserve, release, seconds, server)
    await pool.close()
    return row


async def bare_valkey(url: str, seconds: float, server: int) -> Row:
    """The floor: a script over two keys without gates, what waits in one turn of the loop in one pipeline."""
    client = connect(url, 10.0)
    reserve_sha = await client.script_load(BARE_SCRIPT)
    release_sha = await client.script_load(BARE_RETURN)

    async def work(asks: Sequence[tuple[str, str]]) -> Sequence[int]:
        pipeline = client.pipeline(transaction=False)
        for sha, lease_id in asks:
            pipeline.evalsha(sha, 2, "{bare}a", "{bare}a/x", lease_id)
        return list(await pipeline.execute())

    group: Gathering[tuple[str, str], int] = Gathering(work, lambda ask: ask)

    async def reserve(lease_id: str) -> None:
        assert await group.ask((reserve_sha, lease_id)) == 1

    async def release(lease_id: str) -> None:
        assert await group.ask((release_sha, lease_id)) == 1

    row = await measure("Valkey: bare script, gathered in one pipeline", reserve, release, seconds, server)
    await client.aclose()
    return row


async def no_reset(_connection: object) -> None:
    """The bare statement leaves nothing behind: no round trip to clean up."""


async def ours(name: str, store: CapacityStore, seconds: float, server: int) -> Row:
    """A store of ours with nine gates on."""
    gates = (MUCH, MUCH, MUCH)
    await store.apply_levels(
        1,
        [
            Level(Subject(Kind.GLOBAL, "video"), "", *gates),
            Level(Subject(Kind.CHANNEL, "a"), "", *gates),
            Level(Subject(Kind.SUPPLY, "a/x"), "a", *gates),
        ],
    )

    async def reserve(lease_id: str) -> None:
        request = Request(lease_id, "h", "video", "a", "a/x", VIEW, VIEW, 100, TTL)
        assert isinstance(await store.reserve(request), Lease)

    async def release(lease_id: str) -> None:
        assert await store.release(lease_id, "h", 80)

    row = await measure(name, reserve, release, seconds, server)
    await store.close()
    return row


async def table(seconds: float) -> list[Row]:
    """All rows, in one run."""
    with tempfile.TemporaryDirectory(prefix="bench-capacity-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        async with EmbeddedPostgres(Path(folder) / "pg") as server:
            bare = await bare_postgres(server.url, seconds, server.pid)
            await migrate(server.url, schema="capacity", versions=VERSIONS)
            store = PostgresCapacityStore(Database(server.url, schema="capacity"))
            gathered = await ours("PostgreSQL: capacity, nine gates, gathered", store, seconds, server.pid)
    with ValkeyServer() as valkey:
        script = await bare_valkey(valkey.url, seconds, valkey.pid)
        leased = await ours(
            "Valkey: capacity, nine gates, gathered",
            ValkeyCapacityStore(connect(valkey.url, 10.0), MemoryCapacityStore(SteeredClock()), TTL),
            seconds,
            valkey.pid,
        )
    return [bare, gathered, script, leased]


def show(rows: Sequence[Row]) -> None:
    """The table for people, ratios beside the floor of the same store."""
    print(
        f"{'store':48}{'idle us':>9}{'ratio':>7}"
        + "".join(f"{f'pairs/s at {flight}':>16}{'ratio':>7}" for flight in FLIGHTS)
        + f"{'client us':>11}{'server us':>11}"
    )
    for floor, row in zip([rows[index - index % 2] for index in range(len(rows))], rows, strict=True):
        line = f"{row.name:48}{row.idle_us:9.0f}{row.idle_us / floor.idle_us:7.2f}"
        line += "".join(f"{row.pairs[f]:16,.0f}{row.pairs[f] / floor.pairs[f]:7.2f}" for f in FLIGHTS)
        print(f"{line}{row.client_us:11.1f}{row.server_us:11.1f}")


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement")
    parser.add_argument("--json", action="store_true", help="for machines")
    given = parser.parse_args()
    rows = asyncio.run(table(given.seconds))
    if given.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    else:
        show(rows)


if __name__ == "__main__":
    main()
