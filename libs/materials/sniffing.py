"""What bytes are, by their first bytes. Media are named by what they are, not by what a header says. Pure."""

SNIFF_BYTES = 64
FAMILIES = ("image", "video", "audio")


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
_HOLD_SOUND_TOO = frozenset({"video/mp4", "video/webm"})


def belongs(media_type: str, family: str) -> bool:
    """Whether bytes of that type may be of a family: `image`, `video`, `audio`. Some containers hold sound alone."""
    return media_type.partition("/")[0] == family or (family == "audio" and media_type in _HOLD_SOUND_TOO)
