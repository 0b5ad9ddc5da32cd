"""What bytes are, by their first bytes. Media are named by what they are, not by what a header says."""

import hashlib

SNIFF_BYTES = 64


def sniff(head: bytes) -> str:
    """The media type of bytes that begin so; "" when they are nothing that we know."""
    for start, media_type in _STARTS:
        if head.startswith(start):
            return media_type
    if head[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}.get(head[8:12], "")
    if head[4:8] == b"ftyp":
        return "video/quicktime" if head[8:10] == b"qt" else "audio/mp4" if head[8:11] == b"M4A" else "video/mp4"
    if len(head) > 1 and head[0] == 0xFF and head[1] & 0xE0 == 0xE0:
        return "audio/aac" if head[1] & 0xF6 == 0xF0 else "audio/mpeg"
    return ""


_STARTS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"BM", "image/bmp"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"ID3", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
    (b"\x1aE\xdf\xa3", "video/webm"),
)


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
