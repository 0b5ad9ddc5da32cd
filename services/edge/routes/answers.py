"""Successes."""

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response

from services.edge.routes.operations import JSON

CLIENT_LEFT = 499
"""nginx's word for it; no client ever reads it."""
_encode = msgspec.json.Encoder().encode


def answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A public shape as JSON. Answers are about now, so no cache keeps them."""
    return Response(_encode(value), status, {"cache-control": "no-store", **(headers or {})}, JSON)


def nothing(status: int = 204) -> Response:
    """No body."""
    return Response(None, status, {"cache-control": "no-store"})


def left() -> Response:
    """For the books: the client has gone, and nobody reads it."""
    return Response(None, CLIENT_LEFT)
