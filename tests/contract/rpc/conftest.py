"""Every case of this folder runs over loopback, Unix socket and TCP: one contract, three channels."""

from collections.abc import AsyncIterator

import pytest

from tests.support.hop import TRANSPORTS, Hops


@pytest.fixture(params=TRANSPORTS)
async def hops(request: pytest.FixtureRequest) -> AsyncIterator[Hops]:
    """Opens servers with chosen behaviours on the transport of this run."""
    opened = Hops(request.param)
    yield opened
    await opened.close()
