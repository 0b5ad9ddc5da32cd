"""The floor of event streams: a queue for each stream, a frame made once for all of them, nothing kept.

python -m tests.bench.gateways.bare_streams PORT

GET /v1/runs/{topic}/stream is a stream; POST /v1/runs/{topic}/steer sends an event to all streams of the topic.
"""

import asyncio
import json
import sys
from collections import defaultdict
from collections.abc import AsyncIterator
from datetime import UTC, datetime

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.bench.gateways.upstream import serve

_queues: dict[str, set[asyncio.Queue[bytes]]] = defaultdict(set)


async def stream(request: Request) -> Response:
    """Every event of the topic from now on."""
    queue: asyncio.Queue[bytes] = asyncio.Queue()
    queues = _queues[request.path_params["topic"]]

    async def frames() -> AsyncIterator[bytes]:
        queues.add(queue)
        try:
            yield b": open\n\n"
            while True:
                yield await queue.get()
        finally:
            queues.discard(queue)

    return StreamingResponse(frames(), media_type="text/event-stream")


async def publish(request: Request) -> Response:
    """One event for everybody who listens."""
    event = {"kind": "news", "created_at": datetime.now(UTC).isoformat()}
    frame = f"id: 1\nevent: news\ndata: {json.dumps(event)}\n\n".encode()
    for queue in _queues[request.path_params["topic"]]:
        queue.put_nowait(frame)
    return JSONResponse({}, 202)


app = Starlette(
    routes=[
        Route("/v1/runs/{topic}/stream", stream),
        Route("/v1/runs/{topic}/steer", publish, methods=["POST"]),
    ]
)


if __name__ == "__main__":
    serve(app, int(sys.argv[1]))
