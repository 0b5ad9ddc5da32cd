"""API keys as values (AUTH-1).

Laws of this file:
- a key reads `pm_<id>_<secret>`; its secret is 256 random bits, so it cannot be guessed or searched, and one plain
  SHA-256 of the whole key is all that is kept: a slow hash protects words that people choose, of which there are none;
- hashes are compared in constant time;
- an ended key is as unknown as one that never was, but for the reason that is told.
"""

import base64
import hashlib
import hmac
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from libs.faults.fault import Fault
from services.edge.domain.json_values import NAMED_ERRORS

SECRET_BYTES = 32
PREFIX = "pm"
LONGEST_KEY = 512
LONGEST_TENANT = 64
LONGEST_GRACE_S = 30 * 86_400


class Scope(StrEnum):
    """What a key may do."""

    RUNS = "runs"
    INVOKE = "invoke"
    OPERATE = "operate"
    ADMIN = "admin"


ALL_SCOPES = frozenset(Scope)
ADMIN_KEY_ID = "admin"
ADMIN_TENANT = "default"


@dataclass(frozen=True, slots=True)
class Key:
    """A key on record; never its secret."""

    id: str
    tenant: str
    scopes: frozenset[Scope]
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    former_until: datetime | None = None
    """Until when the secret before the last rotation holds; it is past, or None, where it does not."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A key with what is kept of its secrets: the digest of the present one, and of the one before it."""

    key: Key
    digest: str
    former_digest: str = ""


def spell(key_id: str, random: bytes) -> str:
    """The key as it is given out, once."""
    secret = base64.urlsafe_b64encode(random).rstrip(b"=").decode()
    return f"{PREFIX}_{key_id}_{secret}"


def id_in(text: str) -> str | None:
    """The id that a key names, None if it is not of our making."""
    prefix, _, rest = text.partition("_")
    key_id, _, secret = rest.partition("_")
    fits = prefix == PREFIX and key_id.isalnum() and secret and len(text) <= LONGEST_KEY and text.isascii()
    return key_id if fits else None


def digest(text: str) -> str:
    """What is kept of a key: 64 hexadecimal characters."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def same(digest_a: str, digest_b: str) -> bool:
    """Whether two digests are equal, in a time that does not tell where they differ."""
    return hmac.compare_digest(digest_a, digest_b)


def recognised(kept: Kept | None, shown: str, now: datetime) -> Key:
    """The key that this digest opens; by a former secret it ends with that. Fault unauthenticated."""
    if kept is not None and same(kept.digest, shown):
        return kept.key
    if kept is not None and kept.former_digest and same(kept.former_digest, shown) and kept.key.former_until:
        until = kept.key.former_until
        if until > now:
            return replace(kept.key, expires_at=min(until, kept.key.expires_at or until))
        raise Fault.of("unauthenticated", "the key was given a new secret, and this one has ended")
    raise Fault.of("unauthenticated", "no such key")


def check_kept(key_id: str) -> None:
    """Fault conflict for the admin key, which no store keeps and none can change."""
    if key_id == ADMIN_KEY_ID:
        raise Fault.of("conflict", "the admin key is a setting of the server: change POINTSMAN_ADMIN_KEY instead")


def check_standing(key: Key, now: datetime) -> None:
    """Fault unauthenticated if the key has ended."""
    if key.revoked_at is not None:
        raise Fault.of("unauthenticated", "the key was revoked")
    if key.expires_at is not None and key.expires_at <= now:
        raise Fault.of("unauthenticated", "the key has expired")


def check_scope(scopes: frozenset[Scope], sufficient: frozenset[Scope]) -> None:
    """Fault forbidden unless one of the sufficient scopes is there."""
    if not scopes & sufficient:
        named = " or ".join(f"'{scope}'" for scope in sorted(sufficient))
        raise Fault.of("forbidden", f"the key lacks the scope {named}")


def scopes_from(names: list[str], pointer: str = "/scopes") -> frozenset[Scope]:
    """The scopes of those names. Fault validation_failed for none, or one that does not exist."""
    if not names:
        raise Fault.invalid((pointer, "must name at least one of runs, invoke, operate, admin"))
    unknown = [index for index, name in enumerate(names) if name not in ALL_SCOPES]
    if unknown:
        reason = "is none of runs, invoke, operate, admin"
        raise Fault.invalid(*((f"{pointer}/{index}", reason) for index in unknown[:NAMED_ERRORS]))
    return frozenset(Scope(name) for name in names)


def check_tenant(tenant: str, pointer: str = "/tenant") -> None:
    """Fault validation_failed unless it can name a tenant."""
    fits = 0 < len(tenant) <= LONGEST_TENANT and all(c.isascii() and (c.isalnum() or c in "._-") for c in tenant)
    if not fits:
        raise Fault.invalid((pointer, f"must be 1 to {LONGEST_TENANT} letters, digits, '.', '_' or '-'"))
