"""The floor: a server that does nothing but pass the request on, in the product's own web stack.

python -m tests.bench.gateways.pass_through PORT UPSTREAM_URL
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from tests.bench.gateways.upstream import serve

JSON = {"content-type": "application/json"}


def application(upstream: str) -> Starlette:
    """Everything that is posted goes to `upstream`, and its answer comes back."""
    session: aiohttp.ClientSession

    @asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        nonlocal session
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            yield

    async def chat(request: Request) -> Response:
        body = await request.body()
        if b'"stream"' not in body:
            async with session.post(upstream, data=body, headers=JSON) as answer:
                return Response(await answer.read(), answer.status, media_type="application/json")

        async def pieces() -> AsyncIterator[bytes]:
            async with session.post(upstream, data=body, headers=JSON) as answer:
                async for piece in answer.content.iter_any():
                    yield piece

        return StreamingResponse(pieces(), media_type="text/event-stream")

    return Starlette(routes=[Route("/v1/chat/completions", chat, methods=["POST"])], lifespan=life)


if __name__ == "__main__":
    serve(application(sys.argv[2]), int(sys.argv[1]))
