"""What every test of the command line stands on."""

from collections.abc import Iterator

import pytest

from cli import output


@pytest.fixture(autouse=True)
def _wide_terminal() -> Iterator[None]:
    """A terminal that folds nothing, wherever the test runs."""
    before, output.console.width = output.console.width, 200
    yield
    output.console.width = before
