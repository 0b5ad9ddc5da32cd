"""Driver errors in our own words."""

import asyncpg
import pytest

from libs.faults.fault import Fault
from libs.store.errors import DRIVER_ERRORS, translate


@pytest.mark.parametrize("error", [asyncpg.InternalClientError("another operation is in progress"), OSError("gone")])
def test_a_connection_that_ended_is_an_absence(error: Exception) -> None:
    """CAP-12: the driver's confusion over a connection that ends while it is used is told as absence."""
    assert isinstance(error, DRIVER_ERRORS)
    told = translate(error)
    assert isinstance(told, Fault)
    assert told.code == "governance_backend_down"


def test_a_bug_is_no_absence() -> None:
    """CAP-12: a statement that is wrong stays what it is."""
    error = asyncpg.UndefinedTableError("no such table")
    assert translate(error) is error
