"""The first start on an empty database, which other tests are given with its tables."""

import pytest

from tests.e2e.scenery import setting
from tests.support.stack import AllInOne, SevenProcesses, Stack, running


@pytest.mark.parametrize("kind", [AllInOne, SevenProcesses], ids=["all-in-one", "seven-processes"])
async def test_contexts_make_their_tables_and_serve(kind: type[Stack]) -> None:
    """OPS-2: all at once, in one process or in seven; the catalogue is applied, and nothing is an error."""
    async with running(kind, setting(), prepared=False) as stack, stack.visit():
        assert (await stack.api.get("/readyz"))["status"] == "ready"
        assert "steady" in {model["id"] for model in (await stack.api.get("/v1/models"))["data"]}
    assert stack.said == []
