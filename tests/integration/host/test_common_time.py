"""The time that the database tells."""

from datetime import UTC, datetime, timedelta

import asyncpg

from libs.host.common_time import CommonTime
from tests.support.stepping import step_database
from tests.support.worlds import SteeredClock

NOON = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


def time_of(url: str) -> CommonTime:
    """A process of its own, on a machine whose clock is far off."""
    return CommonTime(url, SteeredClock())


async def told(url: str) -> float:
    """The seconds past noon that a new process is told."""
    time = time_of(url)
    try:
        await time.begin()
        return (time.clock.now() - NOON).total_seconds()
    finally:
        await time.close()


async def test_told_time_never_goes_back(pg_empty_url: str) -> None:
    """VER-6: a step forward of the database's clock is time that has passed; after a step back time goes on from what
    was told, at half the pace until that clock has caught up; whoever asks is told the same."""
    await told(pg_empty_url)
    connection = await asyncpg.connect(pg_empty_url)
    try:
        await connection.execute("UPDATE host.told_time SET reached = $1", NOON)
        heard, read = [], []
        for shown in (0, 10, 3610, 10, 20, 40, 40, 3610, 7180, 7210, 7220):
            moment = NOON + timedelta(seconds=shown)
            await step_database(connection, f"timestamptz '{moment.isoformat()}'")
            read.append((await connection.fetchval("SELECT host.present_time()") - NOON).total_seconds())
            heard.append(await told(pg_empty_url))
    finally:
        await connection.close()
    assert heard == [0, 10, 3610, 3610, 3615, 3625, 3625, 5410, 7195, 7210, 7220]
    assert read == heard, "who only reads reads what would be told"


async def test_processes_agree_while_they_live(pg_empty_url: str) -> None:
    """VER-6: who lives on and who begins believe in one time, also when the database's clock has been put back."""
    living = time_of(pg_empty_url)
    connection = await asyncpg.connect(pg_empty_url)
    try:
        await living.begin()
        before = living.clock.now()
        await step_database(connection, "clock_timestamp() - interval '1 hour'")
        await living.look()
        begun = time_of(pg_empty_url)
        await begun.begin()
        await begun.close()
        assert timedelta(0) <= living.clock.now() - before < timedelta(minutes=1)
        assert abs(living.clock.now() - begun.clock.now()) < timedelta(minutes=1)
    finally:
        await connection.close()
        await living.close()
