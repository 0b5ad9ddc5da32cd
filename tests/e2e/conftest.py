"""One stack for each layout and module; each test visits it on its own loop.

A start costs seconds, and what an RPC carries is the same over every channel (`tests/contract/rpc`). So dispatch,
doors, operators and drain play in both layouts everywhere, and a module with the mark `layout` in both under
`make drills`.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.e2e.competing import DRILL
from tests.e2e.scenery import setting
from tests.support.stack import AllInOne, SevenProcesses, Stack, running

LAYOUTS = {"all-in-one": AllInOne, "seven-processes": SevenProcesses}


def layout(name: str, *, alone: bool = False) -> pytest.MarkDecorator:
    """A mark for a module that plays in this layout; `make drills` plays it in the other one too, unless `alone`."""
    names = list(LAYOUTS) if DRILL and not alone else [name]
    return pytest.mark.parametrize("started", [LAYOUTS[each] for each in names], indirect=True, ids=names)


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
