"""Receiving what Pointsman sends to a `callback_url`: is it from your server, and what does it say?

    callback = verify_callback(request.headers, await request.body(), [SECRET])
    if callback.type == "run.completed": ...

Answer with any 2xx once it is kept; everything else is sent again, under the same id: keep ids and pass repeats over.
"""

import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from libs.kernel import webhooks

TOLERANCE_S = 300.0


class CallbackRefused(Exception):
    """It is not what your server sent, or not from now: answer with 400 and do nothing. The text is the reason."""


class Callback(Struct, frozen=True):
    """A message that was verified. `type` is `run.completed`, `run.failed` and so on; later releases may have more.

    `data` is what GET /v1/runs/{id} tells, without inputs.
    """

    id: str
    type: str
    timestamp: datetime
    data: dict[str, Any]


class _Body(Struct, frozen=True):
    type: str
    timestamp: datetime
    data: dict[str, Any]


def verify_callback(
    headers: Mapping[str, str],
    body: bytes,
    secrets: str | Iterable[str],
    *,
    now: float | None = None,
    tolerance_s: float = TOLERANCE_S,
) -> Callback:
    """The message, proved to be signed by one of the secrets (`whsec_…`) within `tolerance_s` of `now` (seconds since
    1970). `body` are the bytes as they came. Raises CallbackRefused; ValueError for a secret that is none."""
    known = [webhooks.read_secret(text) for text in ([secrets] if isinstance(secrets, str) else secrets)]
    given = {name.lower(): value for name, value in headers.items()}
    message_id, sent, signatures = (
        given.get(name, "") for name in (webhooks.ID, webhooks.TIMESTAMP, webhooks.SIGNATURE)
    )
    if not message_id or not signatures or not (sent.isascii() and sent.isdecimal() and len(sent) < 16):
        raise CallbackRefused("the headers webhook-id, webhook-timestamp and webhook-signature are not all there")
    if not webhooks.is_signed(signatures, known, message_id, int(sent), body):
        raise CallbackRefused("no signature is by a secret of yours")
    if abs((time.time() if now is None else now) - int(sent)) > tolerance_s:
        raise CallbackRefused(f"it was sent more than {tolerance_s:g} s ago, or is from the future")
    try:
        read = msgspec.json.decode(body, type=_Body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise CallbackRefused("the body is signed and yet none of ours; is this release too old?") from None
    return Callback(message_id, read.type, read.timestamp, read.data)
