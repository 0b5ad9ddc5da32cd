"""Which contexts a process hosts and where it listens."""

from pathlib import Path

import pytest

from libs.host.placement import START_ORDER, PlacementError, placement


def listening(env: dict[str, str], *names: str, listen: tuple[str, ...] = ()) -> list[str]:
    place = placement({"POINTSMAN_DATA": "/d", **env}, names, listen=listen, available=START_ORDER)
    return [str(address) for address in place.listen]


def hosted(env: dict[str, str], *names: str) -> tuple[str, ...]:
    return placement(env, names, available=START_ORDER).contexts


def test_all_in_one_is_the_default() -> None:
    """OPS-2: without a setting one process hosts everything, on the documented port, over an embedded database."""
    place = placement({}, available=START_ORDER)
    assert place.contexts == START_ORDER
    assert [str(address) for address in place.listen] == ["loopback:", "dns:///127.0.0.1:50051"]
    assert place.database_url is None
    assert place.data == Path(".pointsman").absolute()
    assert str(place.admin) == f"unix:{place.data}/admin.sock"


def test_contexts_start_leaves_first_in_whatever_order_they_are_named() -> None:
    """OPS-4: a context starts after everything that it calls."""
    assert hosted({}, "edge", "routing", "health") == ("health", "routing", "edge")


def test_what_lives_elsewhere_is_not_hosted_unless_named() -> None:
    """OPS-2: PEER_ places a context; the process without names hosts what is left."""
    env = {"PEER_ROUTING": "unix:/run/r.sock", "PEER_HEALTH": "dns:///health:50051", "PEER_EDGE": "loopback:"}
    assert hosted(env) == ("cost_quote", "capacity", "provider_adapter", "runs", "edge")
    assert hosted(env, "routing") == ("routing",)


@pytest.mark.parametrize(
    "env, names, expected",
    [
        ({}, ("routing",), ["loopback:"]),
        ({"PEER_ROUTING": "unix:/run/r.sock"}, ("routing",), ["loopback:", "unix:/run/r.sock"]),
        ({"PEER_ROUTING": "127.0.0.1:7001"}, ("routing",), ["loopback:", "dns:///127.0.0.1:7001"]),
        (
            {"PEER_ROUTING": "dns:///routing:7001", "LISTEN_ROUTING": "0.0.0.0:7001"},
            ("routing",),
            ["loopback:", "dns:///0.0.0.0:7001"],
        ),
        ({"PEER_ROUTING": "unix:/a,unix:/b", "LISTEN_ROUTING": "unix:/b"}, ("routing",), ["loopback:", "unix:/b"]),
        ({"PEER_ROUTING": "unix:/a", "PEER_RUNS": "unix:/a"}, ("routing", "runs"), ["loopback:", "unix:/a"]),
        ({"POINTSMAN_GRPC": "0.0.0.0:9"}, ("routing",), ["loopback:"]),
        ({"POINTSMAN_GRPC": "0.0.0.0:9"}, (), ["loopback:", "dns:///0.0.0.0:9"]),
    ],
)
def test_where_a_process_listens(env: dict[str, str], names: tuple[str, ...], expected: list[str]) -> None:
    """OPS-2: a named context listens on its own PEER_ address, or on LISTEN_ where that differs."""
    assert listening(env, *names) == expected


def test_further_addresses_may_be_given() -> None:
    """A flag adds an address and takes none away."""
    assert listening({}, "health", listen=("unix:/x",)) == ["loopback:", "unix:/x"]


@pytest.mark.parametrize(
    "env, names, words",
    [
        ({}, ("nonsense",), "there is no context 'nonsense'; the contexts are health, cost_quote"),
        ({"PEER_ROUTING": "nonsense"}, (), "PEER_ROUTING: 'nonsense' is no address"),
        ({"PEER_ROUTING": "dns:///routing:7001"}, ("routing",), "LISTEN_ROUTING=0.0.0.0:7001"),
        ({"PEER_ROUTING": "unix:/a,unix:/b"}, ("routing",), "names 2 replicas; say which of them this process is"),
        ({"PEER_ROUTING": "unix:/a,b:1"}, (), "PEER_ROUTING: 'unix:/a,b:1' is no list of replicas"),
        ({"POINTSMAN_GRPC": "50051"}, (), "POINTSMAN_GRPC: "),
        ({"POINTSMAN_ADMIN": "nonsense"}, (), "POINTSMAN_ADMIN: "),
        ({"POINTSMAN_METRICS": "9464"}, (), "POINTSMAN_METRICS: "),
        ({"POINTSMAN_METRICS": "unix:/m"}, (), "POINTSMAN_METRICS is unix:/m; Prometheus asks by HTTP"),
        ({"POINTSMAN_DRAIN_S": "soon"}, (), "POINTSMAN_DRAIN_S is 'soon'; expected seconds"),
        ({"POINTSMAN_DRAIN_S": "-1"}, (), "POINTSMAN_DRAIN_S"),
        ({"POINTSMAN_TENANT_GRPC_CALLS": "many"}, (), "POINTSMAN_TENANT_GRPC_CALLS is 'many'; give a whole number"),
        ({"POINTSMAN_TENANT_GRPC_CALLS": "-1"}, (), "POINTSMAN_TENANT_GRPC_CALLS"),
        ({"POINTSMAN_DATABASE_URL": "mysql://u:p@h/d"}, (), "begins with mysql; expected postgresql://"),
        ({f"PEER_{name.upper()}": "unix:/x" for name in START_ORDER}, (), "every context is placed elsewhere"),
    ],
)
def test_wrong_settings_are_named(env: dict[str, str], names: tuple[str, ...], words: str) -> None:
    """OPS-8: the error names the variable and what to say instead."""
    with pytest.raises(PlacementError) as caught:
        placement(env, names, available=START_ORDER)
    assert words in str(caught.value)


def test_the_admin_socket_fits_its_address() -> None:
    """A data directory that is too deep for a socket address has no admin socket; a setting may turn it off."""
    deep = {"POINTSMAN_DATA": "/" + "d" * 120}
    assert placement(deep, available=START_ORDER).admin is None
    assert placement({"POINTSMAN_ADMIN": "off"}, available=START_ORDER).admin is None
    assert str(placement({"POINTSMAN_DATA": "/d"}, ["runs"], available=START_ORDER).admin) == "unix:/d/admin-runs.sock"


def test_replicas_may_share_a_data_directory() -> None:
    """OPS-2: each replica of a context has an admin socket of its own."""
    peers = {"POINTSMAN_DATA": "/d", "PEER_RUNS": "10.0.0.1:1,10.0.0.2:2", "PEER_HEALTH": "unix:/r/h1,unix:/r/h2"}
    first = placement({**peers, "LISTEN_RUNS": "0.0.0.0:1"}, ["runs"], available=START_ORDER)
    second = placement({**peers, "LISTEN_HEALTH": "unix:/r/h2"}, ["health"], available=START_ORDER)
    assert [str(first.admin), str(second.admin)] == ["unix:/d/admin-runs-1.sock", "unix:/d/admin-health-h2.sock"]


def test_a_process_without_tables_needs_no_database() -> None:
    """provider_adapter keeps nothing, so alone it starts no database; others without a setting do."""
    assert placement({}, ["provider_adapter"], available=START_ORDER).database_url == ""
    assert placement({}, ["provider_adapter", "runs"], available=START_ORDER).database_url is None
    env = {"POINTSMAN_DATABASE_URL": "postgresql://u@h/d"}
    assert placement(env, ["provider_adapter"], available=START_ORDER).database_url == "postgresql://u@h/d"
