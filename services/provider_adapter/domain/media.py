"""What bytes are, by their first bytes. Media are named by what they are, not by what a header says."""

import hashlib

from libs.materials.sniffing import sniff


def settled_type(head: bytes, claimed: str, family: str) -> str:
    """The media type to store, or "" when the bytes are surely not of `family` (image, video, audio).

    Bytes that nobody recognises are believed only if they claim a type of the family (raw PCM, new containers).
    """
    seen = sniff(head)
    if seen:
        same = seen.partition("/")[0] == family or {seen, family} <= _TWINS
        return seen if same else ""
    claimed = claimed.partition(";")[0].strip().lower()
    return claimed if claimed.partition("/")[0] == family and b"<html" not in head.lower() else ""


_TWINS = frozenset({"video/mp4", "audio/ogg", "video/webm", "audio"})  # containers that hold sound alone as well


def digest(data: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()
