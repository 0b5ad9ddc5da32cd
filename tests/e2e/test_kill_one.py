"""Each of the seven processes is killed in turn while work is in flight, and started again beside the living six."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from libs.host.placement import START_ORDER
from tests.e2e.competing import DRILL
from tests.e2e.scenery import setting
from tests.e2e.test_kill import QUICK
from tests.support import books
from tests.support.stack import SevenProcesses, running
from tests.support.visitor import FIXED, Answer, gap_free, until

AT_ONCE = 8 if DRILL else 3


@pytest.fixture
async def stack() -> AsyncIterator[SevenProcesses]:
    """A stack whose processes this test may kill."""
    async with running(SevenProcesses, setting(submit_s=5.0, **QUICK)) as stack, stack.visit():
        assert isinstance(stack, SevenProcesses)
        yield stack


def is_taken(answer: Answer) -> bool:
    """Whether the Run was created; if not, the answer must be one that a client may obey and repeat."""
    if answer.status != 202:
        assert (answer.status, answer.json["code"], answer.json["retryable"]) == (503, "peer_unavailable", True)
        assert answer.headers["retry-after"]
    return answer.status == 202


async def insist(stack: SevenProcesses, name: str) -> str:
    """Create a Run as a good client does: repeated with the same key until it is taken."""
    body = {"model": "burst", "input": {"prompt": name, **FIXED}}
    headers = {"Idempotency-Key": name.replace(" ", "-")}
    taken = await until(lambda: stack.api.ask("POST", "/v1/runs", json=body, headers=headers), is_taken)
    return str(taken.json["id"])


async def test_kill_9_of_each_context_in_turn(stack: SevenProcesses) -> None:
    """VER-6, ATT-7, VER-7: whichever process dies, callers hear an honest 503 at worst, each Run is delivered once."""
    runs: list[str] = []
    for name in START_ORDER:
        runs += await asyncio.gather(*(insist(stack, f"{name} {number}") for number in range(AT_ONCE)))
        await stack.restart_context(name)
    last = await insist(stack, "after all")
    for run in await stack.api.all_finished([*runs, last], within_s=60):
        assert run["status"] == "succeeded", run
        gap_free(await stack.api.events_of(run["id"]))
    assert len(await books.every_run(stack.api)) == len(runs) + 1
    await books.agree(stack)
