"""/openapi.json and /docs: drawn from the operations that are served, so neither can tell of others (OpenAPI 3.1)."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from starlette.responses import Response

from libs.faults.registry import CODES
from services.edge.problems import MEDIA_TYPE, speaks_openai
from services.edge.routes.docs_page import render
from services.edge.routes.input_schemas import SCHEMAS
from services.edge.routes.operations import ANY, JSON, Asked, Operation, Parameter, plain

VERSION = "1.0.0"
PROBLEM: dict[str, Any] = {
    "type": "object",
    "description": "RFC 9457. Branch on `code`; /errors/{code} says what to do.",
    "required": ["type", "title", "status", "detail", "code", "request_id", "retryable", "category", "scope"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string"},
        "request_id": {"type": "string"},
        "retryable": {"type": "boolean"},
        "category": {"enum": ["content", "request", "supply", "capacity", "unknown"]},
        "scope": {"enum": ["request", "supply", "channel", "attempt"]},
        "call_id": {
            "type": "string",
            "description": "The call that failed: `GET /v1/calls/{call_id}`.",
        },
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["pointer", "reason"],
                "properties": {"pointer": {"type": "string"}, "reason": {"type": "string"}},
            },
        },
    },
}
OPENAI_PROBLEM: dict[str, Any] = {
    **PROBLEM,
    "description": "A problem that is OpenAI's error as well.",
    "required": [*PROBLEM["required"], "error"],
    "properties": {
        **PROBLEM["properties"],
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": "string"},
            },
        },
    },
}
# What may happen to every request, for its headers or its query string too, or to every one with a key.
EVERYWHERE = ("internal", "overloaded", "validation_failed", "malformed_request")
WITH_BODY = ("payload_too_large", "unsupported_media_type")
WITH_KEY = ("unauthenticated", "forbidden", "governance_backend_down", "peer_unavailable", "deadline_exceeded")
_NAMES = {
    100: "Continue",
    200: "Success",
    201: "Created",
    202: "Accepted",
    204: "Nothing",
    206: "Some of it",
    304: "Same",
    307: "Elsewhere",
}


def document(operations: Sequence[Operation]) -> dict[str, Any]:
    """The whole document."""
    shapes = [operation.answer for operation in operations if operation.answer is not None]
    _, components = msgspec.json.schema_components(shapes, ref_template="#/components/schemas/{name}")
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        path = plain(operation.path)
        paths.setdefault(path, {})[operation.method.lower()] = _operation(operation, path)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Pointsman",
            "version": VERSION,
            "description": "Dispatch of generative media. Every answer that is no success is a problem (RFC 9457).",
        },
        "paths": paths,
        "components": {
            "schemas": {**components, **SCHEMAS, "Problem": PROBLEM, "OpenAiProblem": OPENAI_PROBLEM},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(operation: Operation, path: str) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.tells,
        "parameters": [*_in_path(path), *(_parameter(item) for item in operation.parameters)],
        "responses": _responses(operation),
    }
    if operation.scopes:
        described["security"] = [{"key": []}]
        described["x-scopes"] = sorted(operation.scopes)
    if operation.takes is not None or operation.types:
        schema = operation.takes or {"type": "string", "contentEncoding": "binary"}
        required = bool((operation.takes or {"required": True}).get("required"))
        described["requestBody"] = {
            "required": required,
            "content": {media: {"schema": schema} for media in sorted(operation.types)},
        }
    return described


def _in_path(path: str) -> Iterable[dict[str, Any]]:
    for part in path.split("{")[1:]:
        name = part.partition("}")[0]
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _parameter(item: Parameter) -> dict[str, Any]:
    return {"name": item.name, "in": item.where, "description": item.tells, "schema": item.schema}


def _responses(operation: Operation) -> dict[str, Any]:
    success: dict[str, Any] = {"description": _NAMES[operation.status]}
    if operation.answer is not None:
        reference = {"$ref": f"#/components/schemas/{operation.answer.__name__}"}
        success["content"] = {JSON: {"schema": reference}}
    elif operation.status < 300 and operation.status != 204:
        kind = {JSON: "object", ANY: ""}.get(operation.media, "string")
        success["content"] = {operation.media: {"schema": {"type": kind} if kind else {}}}
    if operation.also_media:
        success["content"][operation.also_media] = {"schema": {"type": "string"}}
    responses: dict[str, Any] = {str(operation.status): success}
    for status in operation.also:
        responses[str(status)] = {"description": _NAMES[status]}
    shape = "OpenAiProblem" if speaks_openai(operation.path) else "Problem"
    counted = ("quota_exceeded",) if operation.counts else ()
    taken = WITH_BODY if operation.takes is not None or operation.types else ()
    codes = (*operation.codes, *(WITH_KEY if operation.scopes else ()), *taken, *counted, *EVERYWHERE)
    for code in dict.fromkeys(codes):
        answered = str(CODES[code].http_status)
        told = responses.get(answered, {}).get("description")
        responses[answered] = {
            "description": f"{told}, `{code}`" if told else f"`{code}`",
            "content": {MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{shape}"}}},
        }
    return dict(sorted(responses.items()))


class DocumentRoutes:
    """The handlers; `others` are the operations besides these."""

    def __init__(self, others: Sequence[Operation]) -> None:
        self._document = document((*others, *self.operations()))
        self._json = msgspec.json.encode(self._document)
        self._page = render(self._document).encode()

    async def home(self, asked: Asked) -> Response:
        """Whoever opens the server's address in a browser wants to know what is here."""
        return Response(None, 307, {"location": "/docs"})

    async def openapi(self, asked: Asked) -> Response:
        """The document."""
        return Response(self._json, 200, {"content-type": JSON})

    async def docs(self, asked: Asked) -> Response:
        """The document for people."""
        policy = "default-src 'none'; style-src 'unsafe-inline'"
        return Response(
            self._page, 200, {"content-type": "text/html; charset=utf-8", "content-security-policy": policy}
        )

    def operations(self) -> tuple[Operation, ...]:
        """What is served."""
        return (
            Operation("home", "GET", "/", self.home, "Leads to /docs.", status=307),
            Operation("openapi", "GET", "/openapi.json", self.openapi, "This document."),
            Operation("docs", "GET", "/docs", self.docs, "This document for people.", media="text/html"),
        )
