"""What `pointsman up` says when it cannot start."""

import pytest
from click.testing import CliRunner

from cli.commands.up import remedy
from cli.main import main
from libs.faults.fault import Fault


@pytest.mark.parametrize("address", ["nonsense", "127.0.0.1:99999", ":8080", "127.0.0.1:http", "::1:8080"])
def test_an_address_that_is_none_is_told_with_the_right_form(address: str) -> None:
    """OPS-8: a bad flag is an error that names the next step, before anything starts, never a stack trace."""
    said = CliRunner().invoke(main, ["up", "--http", address])
    assert said.exit_code == 2
    assert isinstance(said.exception, SystemExit)


@pytest.mark.parametrize(
    ("error", "step"),
    [
        (OSError("cannot listen on 127.0.0.1:8080: Address already in use"), "--http"),
        (FileNotFoundError(2, "No such file or directory", "/proc/x"), "--data"),
        (Fault.of("governance_backend_down", "the database cannot be reached"), "POINTSMAN_DATABASE_URL"),
    ],
)
def test_a_stack_that_cannot_start_says_what_to_do(error: Exception, step: str) -> None:
    """OPS-8: a taken port, a bad data directory and an absent database each name their remedy."""
    assert step in remedy(error)
