"""The edge for the tests of this folder."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.contract.edge.house import EdgeHouse, edge_house
from tests.contract.edge.port import Port, public_port


@pytest.fixture
async def edge(tmp_path: Path) -> AsyncIterator[EdgeHouse]:
    """The edge over fake contexts."""
    async with edge_house(tmp_path) as house:
        yield house


@pytest.fixture
async def port(edge: EdgeHouse) -> AsyncIterator[Port]:
    """The fakes behind a public port; the edge knows the keys."""
    async with public_port(edge) as made:
        yield made
