"""Signing what is sent to others' servers, after Standard Webhooks (symmetric, `v1`).

A message has an id, the second at which it was sent and a body; the signature covers the three. A secret is spelled
`whsec_` and its bytes in base64. While secrets change, a message carries a signature by each, with spaces between.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable

PREFIX = "whsec_"
SECRET_BYTES = 32
SHORTEST_BYTES, LONGEST_BYTES = 24, 64
ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"


def spell_secret(secret: bytes) -> str:
    """The secret as people are shown it."""
    return PREFIX + base64.b64encode(secret).decode()


def read_secret(text: str) -> bytes:
    """The inverse of `spell_secret`. ValueError, without the text, for what is no secret."""
    try:
        secret = base64.b64decode(text.strip().removeprefix(PREFIX), validate=True)
    except binascii.Error:
        raise ValueError("a webhook secret is whsec_ and base64") from None
    if not SHORTEST_BYTES <= len(secret) <= LONGEST_BYTES:
        raise ValueError(f"a webhook secret has {SHORTEST_BYTES} to {LONGEST_BYTES} bytes")
    return secret


def signature(secret: bytes, message_id: str, sent_s: int, body: bytes) -> str:
    """`v1,` and the base64 of the HMAC-SHA256 over id, seconds since 1970 and body."""
    signed = f"{message_id}.{sent_s}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(secret, signed, hashlib.sha256)).decode()


def signed_headers(secrets: Iterable[bytes], message_id: str, sent_s: int, body: bytes) -> dict[str, str]:
    """What a message is sent with; every secret signs."""
    signatures = [signature(secret, message_id, sent_s, body) for secret in secrets]
    return {ID: message_id, TIMESTAMP: str(sent_s), SIGNATURE: " ".join(signatures)}


def is_signed(given: str, secrets: Iterable[bytes], message_id: str, sent_s: int, body: bytes) -> bool:
    """Whether one of the given signatures is by one of the secrets. Versions other than `v1` are passed over."""
    mine = [signature(secret, message_id, sent_s, body).encode() for secret in secrets]
    theirs = [text.encode() for text in given.split(" ")]
    matches = [hmac.compare_digest(one, other) for one in mine for other in theirs]
    return any(matches)
