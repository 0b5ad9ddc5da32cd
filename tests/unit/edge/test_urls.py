"""URLs as words: syntax, and addresses that are not public."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.edge.app.url_policy import LiteralUrlPolicy
from services.edge.domain.urls import private_reason, syntax_reason


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/a.png?x=1#y", "http://example.com:8080", "https://93.184.216.34/", "HTTPS://Example.com",
        "https://[2606:4700::1]/a", "https://例え.jp/a",
    ],
)  # fmt: skip
def test_public_urls_pass(url: str) -> None:
    """EDG-2: ordinary http(s) URLs are taken."""
    assert syntax_reason(url) is None
    assert private_reason(url) is None


@pytest.mark.parametrize(
    "url",
    [
        "", "example.com", "ftp://example.com", "file:///etc/passwd", "data:image/png;base64,aa", "javascript:alert(1)",
        "http://", "https:///a", "http://a b", "http://a\n", "http://[::1", "http://a:99999", "http://a:x",
        "http://user@example.com", "http://u:p@example.com", "http://" + "a" * 9000, "//example.com/a",
    ],
)  # fmt: skip
def test_what_is_no_web_address(url: str) -> None:
    """EDG-2: other schemes, users in a URL, control characters and broken hosts are refused."""
    assert syntax_reason(url) is not None


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0x7f.1", "0", "0.0.0.0", "10.0.0.1",
        "172.16.5.5", "192.168.1.1", "169.254.169.254", "100.64.0.1", "224.0.0.1", "[::1]", "[::]", "[fe80::1]",
        "[fd00::1]", "[::ffff:127.0.0.1]", "[::ffff:10.0.0.1]", "[2002:7f00:1::]", "[64:ff9b::7f00:1]",
        "localhost", "LOCALHOST", "localhost.", "a.localhost", "printer.local", "metadata.google.internal",
        "[fe80::1%25eth0]",
    ],
)  # fmt: skip
def test_private_addresses_in_every_spelling(host: str) -> None:
    """EDG-2: loopback, private, link-local and mapped addresses are found however they are spelled."""
    assert private_reason(f"http://{host}:8000/x") is not None


@given(st.ip_addresses(v=4).filter(lambda address: address.is_global and not address.is_multicast))
def test_public_addresses_pass_in_every_spelling(address: object) -> None:
    """EDG-2: a public address is not mistaken for a private one, also as one number."""
    assert private_reason(f"http://{address}/") is None
    assert private_reason(f"http://{int(address)}/") is None  # type: ignore[call-overload]  # an address is a number


async def test_the_policy_can_be_opened() -> None:
    """EDG-2: POINTSMAN_ALLOW_PRIVATE_URLS lets private addresses pass, for development only."""
    assert await LiteralUrlPolicy(False).refusal("http://127.0.0.1/") is not None
    assert await LiteralUrlPolicy(True).refusal("http://127.0.0.1/") is None
