"""URLs that users give: materials and callbacks (AUTH-4, its first half).

What can be judged from the words alone is judged here: scheme, host, and literal addresses that are not public. What a
name resolves to is judged by whoever connects.
"""

import ipaddress
from urllib.parse import urlsplit

LONGEST_URL = 8192
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
LOCAL_NAMES = ("localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback")


def syntax_reason(url: str) -> str | None:
    """Why it is no http(s) URL, or None."""
    if len(url) > LONGEST_URL:
        return f"must have at most {LONGEST_URL} characters"
    if any(character <= " " or character == "\x7f" for character in url):
        return "must not hold spaces or control characters"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "is not a URL"
    if parts.scheme not in ("http", "https"):
        return "must begin with http:// or https://"
    if not host or port == 0:
        return "must name a host"
    if parts.username or parts.password:
        return "must not hold a user or a password"
    return None


def private_reason(url: str) -> str | None:
    """Why a syntactically good URL leads to an address that is not public, or None if the words do not tell."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    if host in LOCAL_NAMES or host.endswith((".localhost", ".local", ".internal")):
        return "leads to this machine or its network"
    address = _literal(host)
    if address is None:
        return None
    inner = _inside(address)
    if not address.is_global or address.is_multicast or (inner is not None and not inner.is_global):
        return "leads to a private, loopback or link-local address"
    return None


def _inside(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that an IPv6 one carries: mapped, 6to4 or NAT64."""
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address in NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour


def _literal(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that a host spells, in the old spellings too: 127.1, 0x7f000001, 2130706433, 0177.0.0.1."""
    try:
        return ipaddress.ip_address(host.split("%")[0])
    except ValueError:
        pass
    parts = host.split(".")
    if not 1 <= len(parts) <= 4:
        return None
    numbers = [_number(part) for part in parts]
    *front, last = numbers
    if last is None or None in front:
        return None
    value = 0
    for number in front:
        if number is None or number > 255:
            return None
        value = value << 8 | number
    rest_bits = 8 * (5 - len(parts))
    if last >= 1 << rest_bits:
        return None
    return ipaddress.IPv4Address(value << rest_bits | last)


def _number(text: str) -> int | None:
    """A decimal, octal (0…) or hexadecimal (0x…) number, None if it is none."""
    try:
        if text.lower().startswith("0x"):
            return int(text, 16)
        if text.startswith("0") and text.isdecimal():
            return int(text, 8)
        return int(text) if text.isascii() and text.isdecimal() else None
    except ValueError:
        return None
