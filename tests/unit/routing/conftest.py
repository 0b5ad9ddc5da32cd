"""What holds at the end of every test of routing."""

from collections.abc import Iterator

import pytest

from tests.unit.routing.paid import BREACHES


@pytest.fixture(autouse=True)
def nothing_was_sent_unpaid() -> Iterator[None]:
    """COST-9: see `paid`."""
    BREACHES.clear()
    yield
    assert BREACHES == []
