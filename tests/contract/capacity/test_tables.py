"""The tables of capacity, as its migrations leave them."""

from libs.store.upgrading import differences
from services.capacity.store.tables import metadata
from tests.contract.capacity.conftest import emptied


async def test_the_tables_are_as_declared(pg_module_url: str) -> None:
    """OPS-7: the migrations lead to the tables that the code declares."""
    await emptied(pg_module_url)
    found = await differences(pg_module_url, schema="capacity", metadata=metadata)
    assert [change for change in found if change[1].name != "test_time"] == []
