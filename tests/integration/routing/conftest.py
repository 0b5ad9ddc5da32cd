"""The stack below the edge, one for each test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integration.routing.stack import Stack, stack_over


@pytest.fixture
async def stack(pg_url: str, tmp_path: Path) -> AsyncIterator[Stack]:
    """Everything running, with claims that lapse soon."""
    async with stack_over(pg_url, tmp_path, ROUTING_WORKER_LEASE_S="3", ROUTING_HEARTBEAT_S="0.8") as made:
        yield made
