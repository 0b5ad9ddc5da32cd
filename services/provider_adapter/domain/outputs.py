"""What a provider's JSON becomes before it is handed on: as it came, unless strict readers would stumble over it."""

import json
import re

import msgspec

from services.provider_adapter.domain.inputs import UNREADABLE, encoded, mended

_SUSPICIOUS = re.compile(rb"\\u[dD][89a-fA-F]|NaN|Infinity")
_strict = msgspec.json.Decoder()


def readable(text: bytes) -> bytes:
    """The same JSON for every reader: half an emoji becomes U+FFFD, a number that is none becomes null.

    Models do say such things (a token may end within a character, a log probability may be minus infinity), and an
    answer that was paid for is not lost over one. What is not suspicious is looked at no further.
    """
    if _SUSPICIOUS.search(text) is None:
        return text
    try:
        _strict.decode(text)
    except UNREADABLE:
        return encoded(mended(json.loads(text)))
    return text
