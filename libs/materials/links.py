"""Links that let a provider read one material for a while, without a key (AUTH-4). Pure but for the secret it holds.

A provider that fetches its inputs by URL needs an address of ours that it can reach and that says by itself what it
opens: one digest, until one time, signed with a key that edge and provider adapter share.
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode, urlsplit

PATH = "/v1/materials/"
LIFETIME = timedelta(hours=24)
SHORTEST_KEY = 16
URL_SETTING, KEY_SETTING = "POINTSMAN_PUBLIC_URL", "POINTSMAN_LINK_KEY"


@dataclass(frozen=True, slots=True)
class Links:
    """Where the edge is reached from outside, and the key that signs. Its text form hides the key."""

    public_url: str
    key: bytes = field(repr=False)

    def url(self, sha256: str, now: datetime) -> str:
        """The address of a material, good for a day."""
        expires = str(int((now + LIFETIME).timestamp()))
        query = urlencode({"expires": expires, "signature": self._signature(sha256, expires)})
        return f"{self.public_url}{PATH}{sha256}?{query}"

    def opens(self, sha256: str, expires: str, signature: str, now: datetime) -> bool:
        """Whether these words, as they came in a link, open the material now."""
        if not (expires.isascii() and expires.isdecimal() and len(expires) <= 12):
            return False
        if datetime.fromtimestamp(int(expires), UTC) <= now:
            return False
        return hmac.compare_digest(signature.encode(), self._signature(sha256, expires).encode())

    def _signature(self, sha256: str, expires: str) -> str:
        return hmac.new(self.key, f"{sha256} {expires}".encode(), hashlib.sha256).hexdigest()


def links_of(env: Mapping[str, str]) -> Links | None:
    """The links that POINTSMAN_PUBLIC_URL and POINTSMAN_LINK_KEY mean; None without the first. ValueError."""
    public_url = env.get(URL_SETTING, "").strip().rstrip("/")
    if not public_url:
        return None
    parts = urlsplit(public_url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(f"{URL_SETTING} must be the http(s) address under which providers reach the edge")
    key = env.get(KEY_SETTING, "").strip()
    if len(key) < SHORTEST_KEY:
        raise ValueError(f"{KEY_SETTING} must hold at least {SHORTEST_KEY} characters beside {URL_SETTING}")
    return Links(public_url, key.encode())
