"""Page tokens: the sort key of the last row, opaque to callers."""

import base64
import binascii
import json
from datetime import datetime

from libs.faults.fault import Fault


def token_of(at: datetime, row_id: str) -> str:
    """The token after the row with that key."""
    return base64.urlsafe_b64encode(json.dumps([at.isoformat(), row_id]).encode()).decode()


def key_of(token: str) -> tuple[datetime, str] | None:
    """The key in a token, None for an empty one; Fault `malformed_request` if it is not ours."""
    if not token:
        return None
    try:
        at, row_id = json.loads(base64.urlsafe_b64decode(token.encode()))
        return datetime.fromisoformat(at), str(row_id)
    except (ValueError, TypeError, binascii.Error) as error:
        raise Fault.of("malformed_request", "the page token is not one of ours") from error
