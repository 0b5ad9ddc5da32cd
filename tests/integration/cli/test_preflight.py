"""What `pointsman up` finds out about ports before it starts anything."""

import socket

import pytest

from cli.preflight import StackError, check_ports, unusable


def test_every_taken_port_is_named_with_its_flag() -> None:
    """OPS-8: one refusal for all of them, each with the flag that names another."""
    with socket.socket() as http, socket.socket() as grpc, socket.socket() as studio:
        for taken in (http, grpc, studio):
            taken.bind(("127.0.0.1", 0))
            taken.listen()
        env = {
            "POINTSMAN_HTTP": f"127.0.0.1:{http.getsockname()[1]}",
            "POINTSMAN_GRPC": f"127.0.0.1:{grpc.getsockname()[1]}",
        }
        with pytest.raises(StackError) as refused:
            check_ports(env, studio.getsockname()[1])
        lines = str(refused.value).splitlines()
        assert [line.rpartition(" ")[2] for line in lines] == ["--http", "--grpc", "--studio-port"]
        assert all("is in use" in line for line in lines)
        with pytest.raises(StackError) as fewer:
            check_ports({**env, "POINTSMAN_GRPC": "127.0.0.1:0"}, None)
        assert str(fewer.value).count("\n") == 0


def test_a_free_port_is_free_again_after_the_look() -> None:
    """OPS-8: looking leaves nothing behind; an address of another machine is told as such."""
    assert unusable("127.0.0.1", 0) == ""
    assert "cannot be used" in unusable("192.0.2.1", 18080)
