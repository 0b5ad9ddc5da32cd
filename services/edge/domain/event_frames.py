"""Events as server-sent events spell them (SSE-1)."""

import msgspec

from services.edge.domain.shapes import RunEvent

RETRY_MS = 2000
BEGINNING = b"retry: %d\n\n" % RETRY_MS
HEARTBEAT = b": heartbeat\n\n"
DRAINING = b": this server is stopping; come back with the last id\nretry: 500\n\n"
REVOKED = b": the key was revoked or has expired\n\n"
_encode = msgspec.json.Encoder().encode


def frame(event: RunEvent) -> bytes:
    """One event in the form of the HTML standard; JSON holds no line break, so one `data:` line carries it."""
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.sequence, event.kind.encode(), _encode(event))
