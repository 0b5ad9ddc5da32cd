"""Addresses and what PEER_<CONTEXT> makes of them."""

import pytest

from libs.rpc.address import LOOPBACK, Transport, parse, parse_peer
from libs.rpc.channel import channel_options, spreading
from libs.rpc.channels import Channels
from libs.rpc.loopback import LoopbackChannel, LoopbackRegistry


@pytest.mark.parametrize(
    "text, transport, target, listen",
    [
        ("unix:/run/p.sock", Transport.UNIX, "unix:/run/p.sock", "unix:/run/p.sock"),
        ("unix:///run/p.sock", Transport.UNIX, "unix:/run/p.sock", "unix:/run/p.sock"),
        ("dns:///health:50051", Transport.TCP, "dns:///health:50051", "health:50051"),
        ("127.0.0.1:0", Transport.TCP, "dns:///127.0.0.1:0", "127.0.0.1:0"),
        ("dns:///[::1]:50051", Transport.TCP, "dns:///[::1]:50051", "[::1]:50051"),
    ],
)
def test_an_address_is_read(text: str, transport: Transport, target: str, listen: str):
    """OPS-2: a context is placed by `loopback:`, `unix:` or `dns:`."""
    address = parse(text)
    assert (address.transport, address.target, address.listen) == (transport, target, listen)
    assert parse(str(address)) == address


def test_in_this_process_is_the_shortest_address():
    """OPS-2: `loopback:` names this process."""
    assert parse("loopback:") == parse("loopback") == LOOPBACK
    assert str(LOOPBACK) == "loopback:"


@pytest.mark.parametrize(
    "text", ["", "unix:", "health", "health:", ":50051", "dns:///health", "a:99999", "http://a:1", "::1:5"]
)
def test_what_is_no_address_is_refused_with_an_example(text: str):
    """OPS-8: the refusal shows what an address looks like."""
    with pytest.raises(ValueError, match="unix:/"):
        parse(text)


@pytest.mark.parametrize(
    "text, target, parts",
    [
        ("unix:/a.sock,unix:/b.sock", "unix:/a.sock,/b.sock", ["unix:/a.sock", "unix:/b.sock"]),
        ("10.0.0.1:1, dns:///10.0.0.2:2", "ipv4:10.0.0.1:1,10.0.0.2:2", ["dns:///10.0.0.1:1", "dns:///10.0.0.2:2"]),
        ("[::1]:1,[::2]:2,", "ipv6:[::1]:1,[::2]:2", ["dns:///[::1]:1", "dns:///[::2]:2"]),
    ],
)
def test_replicas_are_a_list_of_addresses(text: str, target: str, parts: list[str]):
    """OPS-2: a context with several replicas is placed by all their addresses; the list reads back as written."""
    address = parse_peer(text)
    assert (address.target, [str(replica) for replica in address.replicas]) == (target, parts)
    assert parse_peer(str(address)) == address
    assert address.may_be_several


@pytest.mark.parametrize("text, several", [("unix:/a", False), ("10.0.0.1:1", False), ("dns:///health:1", True)])
def test_one_address_is_one_server_unless_it_is_a_name(text: str, several: bool):
    """OPS-2: a name may have several records, a socket and a number have one server."""
    assert parse_peer(text) == parse(text)
    assert parse_peer(text).may_be_several is several


@pytest.mark.parametrize("text", ["unix:/a,10.0.0.1:1", "dns:///a:1,dns:///b:1", "loopback:,unix:/a", "unix:/a,unix:"])
def test_a_mixed_list_is_refused_with_an_example(text: str):
    """OPS-8: names in a list, and sorts that cannot go together, are refused with what to say instead."""
    with pytest.raises(ValueError, match="unix:/"):
        parse_peer(text)


async def test_peers_are_placed_by_the_environment():
    """OPS-2: PEER_<CONTEXT> places a context, everything else is in this process; nothing is connected yet."""
    env = {"PEER_HEALTH": "unix:/run/h.sock", "PEER_COST_QUOTE": "dns:///quote:50051", "PEER_RUNS": " ", "PATH": "/bin"}
    channels = Channels.from_env(env, registry=LoopbackRegistry())
    assert str(channels.address("health")) == "unix:/run/h.sock"
    assert str(channels.address("cost_quote")) == "dns:///quote:50051"
    assert channels.address("runs") == channels.address("routing") == LOOPBACK
    assert isinstance(channels.to("routing")._inner, LoopbackChannel)
    assert channels.to("routing") is channels.to("routing")
    await channels.close()


def test_a_wrong_peer_is_refused_by_the_name_of_its_variable():
    """OPS-8: whoever wrote the setting finds it by its name."""
    with pytest.raises(ValueError, match="PEER_HEALTH: 'health' is no address"):
        Channels.from_env({"PEER_HEALTH": "health"})


async def test_contexts_share_connections_and_keep_their_names():
    """A view for one caller opens no second connection."""
    channels = Channels(registry=LoopbackRegistry())
    routing, edge = channels.for_caller("routing"), channels.for_caller("edge")
    assert routing.to("health")._inner is edge.to("health")._inner
    assert routing.to("health").metadata(None) == (("x-pointsman-caller", "routing"),)
    await channels.close()


def test_nothing_is_retried_behind_our_back():
    """ATT-6: no service config and no transparent retry may send a submission twice."""
    options = dict(channel_options())
    assert (options["grpc.enable_retries"], options["grpc.service_config_disable_resolution"]) == (0, 1)
    assert "retry" not in spreading(parse_peer("unix:/a,unix:/b"))[1].lower()
