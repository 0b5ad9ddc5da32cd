"""Page tokens: the sort key of the last row, opaque to callers."""

import base64
import binascii
import json
from datetime import datetime
from typing import Any

from libs.faults.fault import Fault

Place = tuple[bool, int, datetime, str]
"""Where an alert stands: whether it was acknowledged, the place of its kind, when it was raised, its id."""


def token_of(at: datetime, row_id: str) -> str:
    """The token after the row with that key."""
    return _sealed([at.isoformat(), row_id])


def key_of(token: str) -> tuple[datetime, str] | None:
    """The key in a token, None for an empty one; Fault `malformed_request` if it is not ours."""
    if not token:
        return None
    try:
        at, row_id = _opened(token)
        moment, name = datetime.fromisoformat(at), str(row_id)
    except (ValueError, TypeError, binascii.Error) as error:
        raise _foreign() from error
    if moment.tzinfo is None or "\x00" in name:
        raise _foreign()
    return moment, name


def token_after(place: Place) -> str:
    """The token after the alert with that place."""
    seen, consequence, at, row_id = place
    return _sealed([seen, consequence, at.isoformat(), row_id])


def place_in(token: str) -> Place | None:
    """The place in a token, None for an empty one; Fault `malformed_request` if it is not ours."""
    if not token:
        return None
    try:
        seen, consequence, at, row_id = _opened(token)
        return bool(seen), int(consequence), datetime.fromisoformat(at), str(row_id)
    except (ValueError, TypeError, binascii.Error) as error:
        raise _foreign() from error


def _sealed(key: list[Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode()


def _opened(token: str) -> Any:
    return json.loads(base64.urlsafe_b64decode(token.encode()))


def _foreign() -> Fault:
    return Fault.of("malformed_request", "the page token is not one of ours")
