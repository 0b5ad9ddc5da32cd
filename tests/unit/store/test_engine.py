"""Database addresses as people write them."""

import pytest

from libs.store.engine import driver_url


@pytest.mark.parametrize(
    "given, expected",
    [
        ("postgresql://u@h:5432/db", "postgresql+asyncpg://u@h:5432/db"),
        ("postgres://u:p@h/db?sslmode=require", "postgresql+asyncpg://u:p@h/db?ssl=require"),
        ("postgresql://u@/db?host=/run/pg", "postgresql+asyncpg://u@/db?host=%2Frun%2Fpg"),
        ("postgresql+asyncpg://u@h/db", "postgresql+asyncpg://u@h/db"),
    ],
)
def test_addresses_are_spelled_for_the_driver(given: str, expected: str) -> None:
    """OPS-2: an external PostgreSQL is a setting, in any of the usual spellings."""
    assert driver_url(given).render_as_string(hide_password=False) == expected


@pytest.mark.parametrize("given", ["mysql://h/db", "memory:", "", "nonsense"])
def test_other_addresses_are_refused(given: str) -> None:
    """A wrong address fails at start with words about the address, and without the password in it."""
    with pytest.raises(ValueError, match="database address"):
        driver_url(given)
