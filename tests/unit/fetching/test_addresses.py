"""URLs as words: syntax, and addresses that are not public."""

import ipaddress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from libs.fetching.addresses import address_reason, literal, private_reason, syntax_reason

PRIVATE = [
    "127.0.0.1", "127.1", "2130706433", "0x7f000001", "0X7F000001", "0177.0.0.1", "0x7f.1", "0", "0.0.0.0", "0.1.2.3",
    "10.0.0.1", "172.16.5.5", "192.168.1.1", "169.254.169.254", "0xa9fea9fe", "100.64.0.1", "100.100.100.200",
    "168.63.129.16", "192.0.0.192", "192.88.99.1", "198.18.0.1", "224.0.0.1", "255.255.255.255",
    "[::1]", "[::]", "[fe80::1]", "[fd00::1]", "[fd00:ec2::254]", "[fec0::1]", "[ff02::1]",
    "[::ffff:127.0.0.1]", "[::ffff:10.0.0.1]", "[::ffff:a9fe:a9fe]", "[::127.0.0.1]", "[::10.0.0.1]",
    "[2002:7f00:1::]", "[2002:a9fe:a9fe::1]", "[64:ff9b::7f00:1]", "[64:ff9b::a00:1]", "[64:ff9b:1::a00:1]",
    "[2001:0:0a00:1::1]", "[fe80::1%25eth0]",
    "localhost", "LOCALHOST", "localhost.", "a.localhost", "printer.local", "metadata.google.internal", "nas.lan",
]  # fmt: skip


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/a.png?x=1#y", "http://example.com:8080", "https://93.184.216.34/", "HTTPS://Example.com",
        "https://[2606:4700::1]/a", "https://例え.jp/a", "https://1a.example/", "https://[64:ff9b::5db8:d822]/",
    ],
)  # fmt: skip
def test_public_urls_pass(url: str) -> None:
    """AUTH-4: ordinary http(s) URLs are taken."""
    assert syntax_reason(url) is None
    assert private_reason(url) is None


@pytest.mark.parametrize(
    "url",
    [
        "", "example.com", "ftp://example.com", "file:///etc/passwd", "data:image/png;base64,aa", "javascript:alert(1)",
        "http://", "https:///a", "http://a b", "http://a\n", "http://[::1", "http://a:99999", "http://a:x",
        "http://user@example.com", "http://u:p@example.com", "http://@example.com", "http://" + "a" * 9000,
        "//example.com/a", "http://example.com\\@10.0.0.1/", "http://example.com:25/", "https://example.com:6379x/",
        "http://example.com:22",
    ],
)  # fmt: skip
def test_what_is_no_web_address(url: str) -> None:
    """AUTH-4: other schemes, users in a URL, control characters, other protocols' ports, broken hosts are refused."""
    assert syntax_reason(url) is not None


@pytest.mark.parametrize("host", PRIVATE)
def test_private_addresses_in_every_spelling(host: str) -> None:
    """AUTH-4: loopback, private, link-local, metadata and carried addresses are found however they are spelled."""
    assert private_reason(f"http://{host}:8000/x") is not None


@given(st.ip_addresses(v=4).filter(lambda address: address_reason(address) is None))
@example(ipaddress.IPv4Address("8.8.8.8"))
def test_public_addresses_pass_in_every_spelling(address: ipaddress.IPv4Address) -> None:
    """AUTH-4: a public address is not mistaken for a private one, also as one number."""
    assert address.is_global
    for spelling in (str(address), str(int(address)), hex(int(address)), oct(int(address)).replace("o", "")):
        assert literal(spelling) == address
        assert private_reason(f"http://{spelling}/") is None


@given(st.ip_addresses(v=4).filter(lambda address: not address.is_global))
def test_a_private_address_stays_private_inside_another(address: ipaddress.IPv4Address) -> None:
    """AUTH-4: mapped, compatible, 6to4 and NAT64 forms of an address that is not public are refused as it is."""
    value = int(address)
    carried = (
        ipaddress.IPv6Address((0xFFFF << 32) | value),
        ipaddress.IPv6Address(value),
        ipaddress.IPv6Address((0x2002 << 112) | (value << 80) | 1),
        ipaddress.IPv6Address((0x0064FF9B << 96) | value),
    )
    assert [address_reason(form) for form in (address, *carried)].count(None) == 0
