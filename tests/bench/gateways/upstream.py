"""A provider that answers at once: OpenAI's chat, plain and streamed, from bytes that are made beforehand.

python -m tests.bench.gateways.upstream PORT
"""

import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn

MODEL = "mock-chat"
CHUNKS = 20
USAGE = {"prompt_tokens": 42, "completion_tokens": CHUNKS, "total_tokens": 42 + CHUNKS}
HEAD = {"id": "chatcmpl-0", "created": 1764500000, "model": MODEL}
Send = Callable[[dict[str, Any]], Awaitable[None]]


def _choice(**fields: Any) -> dict[str, Any]:
    return {"index": 0, "logprobs": None, **fields}


WHOLE = json.dumps(
    HEAD
    | {
        "object": "chat.completion",
        "choices": [_choice(message={"role": "assistant", "content": "word " * CHUNKS}, finish_reason="stop")],
        "usage": USAGE,
    }
).encode()


def _frame(**fields: Any) -> bytes:
    return b"data: " + json.dumps(HEAD | {"object": "chat.completion.chunk"} | fields).encode() + b"\n\n"


FRAMES = (
    *(_frame(choices=[_choice(delta={"content": "word "}, finish_reason=None)]) for _ in range(CHUNKS)),
    _frame(choices=[_choice(delta={}, finish_reason="stop")]),
    _frame(choices=[], usage=USAGE),
    b"data: [DONE]\n\n",
)


async def app(scope: dict[str, Any], receive: Callable[[], Awaitable[dict[str, Any]]], send: Send) -> None:
    """The ASGI application: any POST is a chat."""
    if scope["type"] != "http":
        return
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    if b'"stream":true' in body.replace(b" ", b""):
        await _start(send, b"text/event-stream")
        for frame in FRAMES:
            await send({"type": "http.response.body", "body": frame, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    else:
        await _start(send, b"application/json", len(WHOLE))
        await send({"type": "http.response.body", "body": WHOLE})


async def _start(send: Send, media_type: bytes, length: int | None = None) -> None:
    headers = [(b"content-type", media_type)]
    if length is not None:
        headers.append((b"content-length", str(length).encode()))
    await send({"type": "http.response.start", "status": 200, "headers": headers})


def serve(application: Any, port: int) -> None:
    """Serve it on loopback until stopped."""
    uvicorn.run(application, host="127.0.0.1", port=port, log_level="warning", access_log=False, lifespan="on")


if __name__ == "__main__":
    serve(app, int(sys.argv[1]))
