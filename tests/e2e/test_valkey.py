"""The main road with leases in Valkey: POINTSMAN_REDIS_URL alone moves them."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.e2e.conftest import LAYOUTS, layout
from tests.e2e.scenery import setting
from tests.support import books
from tests.support.stack import Stack, running
from tests.support.valkey import ValkeyServer
from tests.support.visitor import until

pytestmark = layout("seven-processes")

BURST = 20
FREE = {"five/clip": 5, "eight/clip": 8, "three/clip": 3}


@pytest.fixture(scope="module")
def server() -> Iterator[ValkeyServer]:
    """A server of leases for the stacks of this module."""
    with ValkeyServer() as made:
        yield made


@pytest.fixture(scope="module", params=LAYOUTS.values(), ids=LAYOUTS.keys())
def started(request: pytest.FixtureRequest, server: ValkeyServer) -> Iterator[Stack]:
    """As in every module, with one setting more. Each layout finds the server empty."""
    server.kill()
    server.start()
    with asyncio.Runner() as runner:
        context = running(request.param, setting(POINTSMAN_REDIS_URL=server.url))
        stack = runner.run(context.__aenter__())
        yield stack
        runner.run(context.__aexit__(None, None, None))
        assert stack.said == []


async def test_a_burst_is_dispatched_by_leases_in_valkey(stack: Stack, server: ValkeyServer) -> None:
    """CAP-5, CAP-10, OPS-2: sixteen of twenty run at once, never more than the slots; the leases are on that server."""
    for part in ("five", "eight", "three"):
        await stack.lab.account(part, render_s=3600.0)
    runs = [await stack.api.post_run("burst", f"scene {number}") for number in range(BURST)]
    await until(stack.api.slots, lambda seen: {name: seen.get(name) for name in FREE} == FREE)
    leases = (await stack.api.get("/v1/operator/capacity"))["leases"]
    kept = server.keys("*lease:*")
    assert {lease["id"] for lease in leases} <= {key.rpartition(":")[2] for key in kept}

    async def waiting() -> int:
        reasons = [await stack.api.waiting_reason(run_id) for run_id in runs]
        return sum((reason or "").startswith("capacity: ") for reason in reasons)

    await until(waiting, lambda count: count == BURST - sum(FREE.values()))
    for part in ("five", "eight", "three"):
        await stack.lab.account(part, render_s=0.2)
    assert {run["status"] for run in await stack.api.all_finished(runs)} == {"succeeded"}
    await until(stack.api.slots, lambda seen: not any(seen[name] for name in FREE))


async def test_the_books_agree(stack: Stack) -> None:
    """VER-7: every accepted job is one Attempt of ours and nothing was sent twice."""
    await books.agree(stack)
