"""One stack for each layout and module; each test visits it on its own loop."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.e2e.scenery import setting
from tests.support.stack import AllInOne, SevenProcesses, Stack, running

LAYOUTS = {"all-in-one": AllInOne, "seven-processes": SevenProcesses}


@pytest.fixture(scope="module", params=LAYOUTS.values(), ids=LAYOUTS.keys())
def started(request: pytest.FixtureRequest) -> Iterator[Stack]:
    """A stack for the tests of one module. At its end nothing of it may be left, and nothing went wrong unseen."""
    with asyncio.Runner() as runner:
        context = running(request.param, setting())
        stack = runner.run(context.__aenter__())
        yield stack
        runner.run(context.__aexit__(None, None, None))
        assert stack.said == []


@pytest.fixture
async def stack(started: Stack) -> AsyncIterator[Stack]:
    """The module's stack with its sessions open."""
    async with started.visit():
        yield started
