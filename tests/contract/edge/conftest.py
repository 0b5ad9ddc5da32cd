"""The edge for the tests of this folder."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.contract.edge.house import EdgeHouse, edge_house


@pytest.fixture
async def edge(tmp_path: Path) -> AsyncIterator[EdgeHouse]:
    """The edge over fake contexts."""
    async with edge_house(tmp_path) as house:
        yield house
