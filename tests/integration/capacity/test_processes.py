"""Eight real processes compete for few slots, on each backend: never one lease too many, and none lost.

Each process writes what it was told; the judge adds up holdings from reservation to release, on the server's times.
"""

import asyncio
import json
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from services.capacity.domain.levels import Kind, Level, Subject
from services.capacity.ports import CapacityStore
from tests.integration.capacity.competitor import opened, prepared

PROCESSES = 8
ROUNDS = 60
SLOTS = {"a": 5, "a/x": 3, "a/y": 4, "b": 9, "b/z": 2}
KIND_SLOTS = 6
REQUESTS_A_MINUTE = 150
ROOT = Path(__file__).resolve().parents[3]


def declared() -> list[Level]:
    """A whole kind, two Channels, three Supplies; one Supply has a window."""
    made = [Level(Subject(Kind.GLOBAL, "video"), concurrency=KIND_SLOTS)]
    for name, slots in SLOTS.items():
        kind = Kind.SUPPLY if "/" in name else Kind.CHANNEL
        rpm = REQUESTS_A_MINUTE if name == "a/x" else 0
        made.append(Level(Subject(kind, name), name[0] if "/" in name else "", slots, rpm))
    return made


async def competed(*where: str) -> list[dict[str, Any]]:
    """What all processes were told, in no order."""

    async def one(number: int) -> list[dict[str, Any]]:
        arguments = ["-m", "tests.integration.capacity.competitor", str(number), str(ROUNDS), *where]
        process = await asyncio.create_subprocess_exec(
            sys.executable, *arguments, cwd=ROOT, stdout=asyncio.subprocess.PIPE
        )
        try:
            out, _ = await asyncio.wait_for(process.communicate(), 100)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert process.returncode == 0
        return [json.loads(line) for line in out.splitlines()]

    return [told for tale in await asyncio.gather(*map(one, range(PROCESSES))) for told in tale]


def most_at_once(tales: list[dict[str, Any]], name: str) -> int:
    """The greatest number of leases that held at one moment; those never released count to their end."""
    moments = []
    for told in tales:
        if told["at"] and name in ("", told["channel"], told["supply"]):
            moments.append((datetime.fromisoformat(told["at"]), 1))
            moments.append((datetime.fromisoformat(told["until"]), -1))
    most = now = 0
    for _, change in sorted(moments):  # at one moment ends come before beginnings: a slot may be taken over
        now += change
        most = max(most, now)
    return most


@pytest.mark.parametrize("backend", ["postgres", "valkey"])
async def test_eight_processes_never_hold_more_than_there_is(backend: str, pg_url: str, valkey_url: str) -> None:
    """CAP-1, CAP-2, CAP-5: from eight processes no level holds more than its slots or admits more than its window."""
    where = (pg_url, valkey_url) if backend == "valkey" else (pg_url,)
    store: CapacityStore = await prepared(declared(), *where)
    tales = await competed(*where)
    admitted = [told for told in tales if told["at"]]
    assert len(admitted) > 50
    assert len(admitted) < len(tales) == PROCESSES * ROUNDS
    for name, slots in SLOTS.items():
        assert most_at_once(tales, name) <= slots, name
    assert most_at_once(tales, "") <= KIND_SLOTS
    assert sum(told["supply"] == "a/x" for told in admitted) <= REQUESTS_A_MINUTE
    await store.sweep()
    figures = {figure.level.subject.id: figure.usage for figure in await store.figures()}
    assert {name: used.in_use for name, used in figures.items() if used.in_use} == {}
    assert figures["a/x"].requests <= REQUESTS_A_MINUTE
    await store.close()


async def test_a_process_stands_on_what_others_did(pg_url: str, valkey_url: str) -> None:
    """CAP-5: what one process declared and took, another sees, on either backend."""
    for where in ((pg_url,), (pg_url, valkey_url)):
        first = await prepared(declared(), *where)
        second = opened(*where)
        assert await second.catalog_revision() == await first.catalog_revision()
        assert [figure.level.concurrency for figure in await second.figures()] == [6, 5, 9, 3, 4, 2]
        await first.close()
        await second.close()
