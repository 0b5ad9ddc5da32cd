"""/v1/artifacts: bytes by their digest, whole or in part, and uploads."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import Response

from libs.blobs.blob import UNKNOWN_TYPE, Blob, Blobs, missing, whole
from libs.faults.fault import Fault
from libs.kernel.clock import Clock
from libs.materials.links import PATH, Links
from services.edge.app.find_artifact import find_artifact
from services.edge.app.reveal import Reveal
from services.edge.app.upload_artifact import upload_artifact
from services.edge.domain import ranges, shapes
from services.edge.domain.orders import MEDIA_TYPE
from services.edge.routes.answers import answer
from services.edge.routes.bodies import chunks, media_type
from services.edge.routes.operations import ANY, INVOKERS, READERS, Asked, Operation, Parameter

# Content named by its digest never changes, but whether this caller may read it can: no shared cache.
CACHE = "private, max-age=31536000, immutable"
# What a browser may show in place; anything else (HTML, SVG) could run as this origin and is saved instead.
SHOWN = ("image/png", "image/jpeg", "image/webp", "image/gif", "video/", "audio/", "text/plain")
# Names of whole operations of HTTP, not of media.
UNTYPED = frozenset({"", "application/x-www-form-urlencoded", "multipart/form-data"})


class ArtifactRoutes:
    """The handlers with what they need."""

    def __init__(
        self, blobs: Blobs, reveal: Reveal, upload_limit_bytes: int, links: Links | None, clock: Clock
    ) -> None:
        self._blobs = blobs
        self._reveal = reveal
        self._upload_limit_bytes = upload_limit_bytes
        self._links = links
        self._clock = clock

    async def get(self, asked: Asked) -> Response:
        """200 with all bytes, 206 with some, 304 if the caller has them."""
        blob = await find_artifact(self._blobs, self._reveal, asked.caller, asked.path("sha256"))
        return self._served(asked, blob)

    async def linked(self, asked: Asked) -> Response:
        """The same for whoever holds a link to it, a key or not. A link that opens nothing finds nothing."""
        sha256, now = asked.path("sha256"), self._clock.now()
        words = (asked.query("expires") or "", asked.query("signature") or "")
        if self._links is None or not self._links.opens(sha256, *words, now):
            raise missing(sha256)
        return self._served(asked, await self._blobs.stat(sha256))

    def _served(self, asked: Asked, blob: Blob) -> Response:
        request = asked.request
        etag = f'"{blob.sha256}"'
        headers = {"etag": etag, "cache-control": CACHE, "accept-ranges": "bytes", "vary": "Authorization"}
        if ranges.names(request.headers.get("if-none-match"), etag):
            return Response(None, 304, headers)
        if not blob.media_type.startswith(SHOWN):
            headers["content-disposition"] = "attachment"
        headers["content-security-policy"] = "sandbox; default-src 'none'"
        wanted = None
        if ranges.still_wanted(request.headers.get("if-range"), etag):
            wanted = ranges.byte_range(request.headers.get("range"), blob.bytes)
        start, end = wanted or (0, blob.bytes)
        headers["content-length"] = str(end - start)
        if wanted:
            headers["content-range"] = f"bytes {start}-{end - 1}/{blob.bytes}"
        content = None if request.method == "HEAD" else self._read(blob.sha256, (start, end) if wanted else None)
        return _Bytes(content, 206 if wanted else 200, headers, blob)

    def _read(self, sha256: str, byte_range: tuple[int, int] | None) -> AsyncIterator[bytes]:
        """A range, or all of it: then damaged bytes end as a broken answer, never as a whole one (RUN-7)."""
        if byte_range is not None:
            return self._blobs.open(sha256, byte_range)
        return whole(sha256, self._blobs.open(sha256))

    async def upload(self, asked: Asked) -> Response:
        """201 with the artifact; the same bytes again are the same artifact."""
        said = media_type(asked.request)
        if said in UNTYPED:
            said = UNKNOWN_TYPE
        if not MEDIA_TYPE.fullmatch(said):
            raise Fault.of("unsupported_media_type", f"{said[:100]} is no media type; send Content-Type: type/subtype")
        content = chunks(asked.request, self._upload_limit_bytes)
        limit = self._upload_limit_bytes
        blob = await upload_artifact(self._blobs, self._reveal, asked.tenant, content, said, limit)
        url = f"/v1/artifacts/{blob.sha256}"
        return answer(shapes.ArtifactRef(blob.sha256, blob.media_type, blob.bytes, url), 201, {"location": url})

    def operations(self) -> tuple[Operation, ...]:
        """What is served."""
        return (
            Operation(
                "getArtifact", "GET", "/v1/artifacts/{sha256}", self.get,
                "Bytes by their SHA-256, whole or one range; visible to the tenant that made or uploaded them.",
                READERS, media=ANY, codes=("not_found", "range_not_satisfiable"), also=(206, 304),
                parameters=(
                    Parameter("Range", "One range of bytes.", where="header"),
                    Parameter("If-None-Match", "The tag that the caller has.", where="header"),
                ),
            ),
            Operation(
                "getMaterial", "GET", PATH + "{sha256}", self.linked,
                "A material by a link of ours, for the provider that it was given to; no key is needed.",
                media=ANY, codes=("not_found", "range_not_satisfiable"), also=(206, 304),
                parameters=(
                    Parameter("expires", "Until when the link opens it."),
                    Parameter("signature", "What proves the link."),
                ),
            ),
            Operation(
                "uploadArtifact", "POST", "/v1/artifacts", self.upload,
                'Keep the bytes of the body; name them in inputs as {"artifact": sha256}.', INVOKERS, 201,
                shapes.ArtifactRef, types=frozenset({UNKNOWN_TYPE}),
                codes=("payload_too_large", "unsupported_media_type"),
            ),
        )  # fmt: skip


class _Bytes(Response):
    """Chunks of a blob; the first is read before the answer begins, so that a missing one is still a problem."""

    def __init__(self, content: AsyncIterator[bytes] | None, status: int, headers: dict[str, str], blob: Blob) -> None:
        super().__init__(None, status, headers, blob.media_type)
        self._content = content

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """The ASGI side of it."""
        start = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        if self._content is None:
            await send(start)
        else:
            async with contextlib.aclosing(self._content) as chunks_of_it:  # type: ignore[type-var]  # a generator
                first = await anext(chunks_of_it, b"")
                await send(start)
                await send({"type": "http.response.body", "body": first, "more_body": True})
                async for chunk in chunks_of_it:
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
