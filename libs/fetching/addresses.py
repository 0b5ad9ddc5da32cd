"""Which addresses a user's URL may lead to, and which URLs are none (AUTH-4). Pure: it judges words, asks nobody.

Laws of this file:
- an address is admitted only if it is public in every reading: an IPv6 address that carries an IPv4 one (mapped,
  compatible, 6to4, Teredo, NAT64) is judged by both;
- a host is read as the oldest resolvers read it (127.1, 0x7f000001, 0177.0.0.1, 2130706433), so that no spelling of a
  number passes for a name.
"""

import ipaddress
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

LONGEST_URL = 8192
LOCAL_NAMES = ("localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback")
LOCAL_SUFFIXES = (".localhost", ".localdomain", ".local", ".internal", ".home.arpa", ".lan")
NAT64 = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("64:ff9b:1::/48"))
COMPATIBLE = ipaddress.IPv6Network("::/96")
# Public by the registry of addresses, and yet nobody's to fetch from: a cloud's services for its own machines, relays.
SPECIAL = tuple(
    ipaddress.ip_network(text)
    for text in ("100.100.100.200/32", "168.63.129.16/32", "192.0.0.0/24", "192.88.99.0/24", "fec0::/10", "3fff::/20")
)
# Ports that a browser refuses too ("bad ports" of the Fetch standard): a request there speaks to something else.
BAD_PORTS = frozenset(
    (1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110,
     111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532,
     540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061,
     6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080)
)  # fmt: skip


def allows_private(env: Mapping[str, str]) -> bool:
    """Whether the operator opens all addresses, for development alone."""
    return env.get("POINTSMAN_ALLOW_PRIVATE_URLS", "").strip() in ("1", "true", "yes")


def syntax_reason(url: str) -> str | None:
    """Why it is no http(s) URL that may be called, or None."""
    if len(url) > LONGEST_URL:
        return f"must have at most {LONGEST_URL} characters"
    if any(character <= " " or character in "\x7f\\" for character in url):
        return "must not hold spaces, control characters or backslashes"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "is not a URL"
    if parts.scheme not in ("http", "https"):
        return "must begin with http:// or https://"
    if not host or port == 0:
        return "must name a host"
    if parts.username is not None or parts.password is not None:
        return "must not hold a user or a password"
    if port in BAD_PORTS:
        return f"must not name port {port}, which is another protocol's"
    return None


def private_reason(url: str) -> str | None:
    """Why a syntactically good URL leads to an address that is not public, or None if the words do not tell."""
    return host_reason(urlsplit(url).hostname or "")


def host_reason(host: str) -> str | None:
    """The same of a host by itself: a name, or a literal address without its brackets."""
    host = host.lower().rstrip(".")
    if host in LOCAL_NAMES or host.endswith(LOCAL_SUFFIXES):
        return "leads to this machine or its network"
    address = literal(host)
    return None if address is None else address_reason(address)


def address_reason(address: Address) -> str | None:
    """Why a user's URL may not lead there, or None for a public address."""
    for reading in _readings(address):
        if not reading.is_global or reading.is_multicast or any(reading in network for network in SPECIAL):
            return "leads to a private, loopback or link-local address"
    return None


def _readings(address: Address) -> Iterator[Address]:
    """The address, and every IPv4 address that it may come to."""
    if isinstance(address, ipaddress.IPv4Address):
        yield address
        return
    inner = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if any(address in network for network in (*NAT64, COMPATIBLE)):
        inner.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    yield from (reading for reading in inner if reading is not None)
    yield address


def literal(host: str) -> Address | None:
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
        if text.startswith("0x"):
            return int(text[2:] or "0", 16)
        if text.startswith("0") and text.isdecimal():
            return int(text, 8)
        return int(text) if text.isascii() and text.isdecimal() else None
    except ValueError:
        return None
