"""What a document in a conversation may weigh in tokens, before anybody has read it. Pure.

Providers read a PDF page by page, its words and its picture both (Anthropic says 1,500 to 3,000 tokens of words a page,
beside the picture; Gemini a fixed 258), so its pages are counted where they can be seen. What they cannot be seen in,
and what is no PDF, weighs a token for each byte at most, as text does. What is not there (a `file_id`) is taken for as
many pages as the strictest provider reads.
"""

import binascii
import re
import zlib
from base64 import b64decode
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

PAGE_TOKENS, PAGE_TOKENS_AT_MOST = 2000, 8192
"""Of a page: to be expected, and words and picture of a dense one together."""
BYTES_PER_PAGE = 100_000
"""Of a page that cannot be counted: about what a scanned one has."""
PAGES_UNSEEN = 100
BYTES_PER_TOKEN = 4
_PAGE = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
_PACKED = re.compile(rb"/Type\s*/ObjStm[^>]*>>\s*stream\r?\n")
UNPACKED_BYTES, STREAMS = 1 << 20, 4096
"""Read of one packed stream of a PDF, and how many of them."""


class Weight(NamedTuple):
    """Tokens: to be expected, and at most."""

    expected: int
    most: int


def weight_of(part: Mapping[str, Any]) -> Weight:
    """Of a part of type `file`."""
    file = part.get("file")
    data = file.get("file_data") if isinstance(file, Mapping) else None
    if not isinstance(data, str):
        return Weight(PAGES_UNSEEN * PAGE_TOKENS, PAGES_UNSEEN * PAGE_TOKENS_AT_MOST)
    head, comma, payload = data.partition(",")
    payload = payload if comma else data
    size = len(payload) * 3 // 4
    if head.startswith("data:text/"):
        return Weight(-(-size // BYTES_PER_TOKEN), size)
    pages = pages_in(_decoded(payload))
    if pages:
        return Weight(pages * PAGE_TOKENS, pages * PAGE_TOKENS_AT_MOST)
    return Weight((size // BYTES_PER_PAGE + 1) * PAGE_TOKENS, max(PAGE_TOKENS_AT_MOST, size))


def pages_in(document: bytes) -> int:
    """Pages of a PDF; 0 where none can be seen: it is another document, or its pages are hidden from us."""
    if not document.startswith(b"%PDF"):
        return 0
    return len(_PAGE.findall(document)) + sum(len(_PAGE.findall(stream)) for stream in _unpacked(document))


def _unpacked(document: bytes) -> Iterator[bytes]:
    """The packed objects of newer PDFs, as far as they can be read."""
    for number, found in enumerate(_PACKED.finditer(document)):
        if number >= STREAMS:
            return
        packed = document[found.end() : found.end() + UNPACKED_BYTES]
        try:
            yield zlib.decompressobj().decompress(packed, UNPACKED_BYTES)
        except zlib.error:
            continue


def _decoded(payload: str) -> bytes:
    try:
        return b64decode(payload)
    except (binascii.Error, ValueError):
        return b""
