"""What `pointsman up` says when it cannot start."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.commands.up import remedy, welcome
from cli.main import main
from cli.preflight import SettingError, StackError, check_settings, prepare_data
from libs.faults.fault import Fault
from libs.host.cluster import DirectoryLock
from libs.rpc.address import parse


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


@pytest.mark.parametrize(("flag", "variable"), [("--http", "POINTSMAN_HTTP"), ("--grpc", "POINTSMAN_GRPC")])
def test_settings_are_judged_before_anything_is_touched(flag: str, variable: str) -> None:
    """OPS-8: an address that is none is wrong use, and names its flag."""
    with pytest.raises(SettingError, match=flag):
        check_settings({variable: "nonsense"})
    check_settings({})


def test_a_data_directory_in_use_names_its_holder(tmp_path: Path) -> None:
    """OPS-8: a second start of the same stack is told whose the data is, before any port is looked at."""
    home = tmp_path / "postgres"
    home.mkdir()
    prepare_data(tmp_path)
    lock = DirectoryLock(home)
    lock.acquire()
    try:
        with pytest.raises(StackError, match=f"in use by a running stack, process {os.getpid()};"):
            prepare_data(tmp_path)
    finally:
        lock.release()
    prepare_data(tmp_path)


def test_a_data_directory_that_cannot_be_made(tmp_path: Path) -> None:
    """OPS-8: the refusal names the directory, the reason and the flag."""
    file = tmp_path / "file"
    file.touch()
    for folder in (file, file / "below"):
        with pytest.raises(StackError, match=r"cannot be made: .*--data"):
            prepare_data(folder)


def test_the_welcome_tells_where_everything_is(tmp_path: Path) -> None:
    """OPS-8: the documents, the gRPC address, the key and two commands that work as written."""
    asked, served = parse("127.0.0.1:0"), parse("127.0.0.1:50777")
    said = welcome({"POINTSMAN_DATA": str(tmp_path), "POINTSMAN_HTTP": "127.0.0.1:8081"}, {asked: served})
    assert "http://127.0.0.1:8081/docs" in said
    assert "127.0.0.1:50777" in said
    assert f"{tmp_path}/admin.key" in said
    assert f".venv/bin/pointsman --url http://127.0.0.1:8081 --data {tmp_path} models" in said
    plain = welcome({"POINTSMAN_DATA": str(Path(".pointsman").absolute())}, {})
    assert ".venv/bin/pointsman models" in plain
