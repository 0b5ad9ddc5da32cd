"""OpenAI's interface: chat completions, embeddings, images, speech (OAI-1)."""

from typing import Any

from starlette.responses import Response

from libs.blobs.blob import Blobs
from libs.faults.fault import Fault
from libs.kernel.clock import Clock
from libs.telemetry.metrics import Metrics
from services.edge.app.authenticate import Authenticator
from services.edge.app.completions import Completions
from services.edge.domain import openai_answers, openai_requests, openai_shapes
from services.edge.domain.call_headers import headers_of
from services.edge.domain.calls import Receipt
from services.edge.domain.open_limits import Hold
from services.edge.domain.openai_requests import Chat
from services.edge.domain.shapes import ArtifactRef
from services.edge.routes import call_schemas
from services.edge.routes.answers import answer, left
from services.edge.routes.calling import Calling, call_id_of
from services.edge.routes.completion_stream import Feed, spelling
from services.edge.routes.event_stream import EVENT_STREAM, EventStream
from services.edge.routes.operations import CALLERS, JSON, Asked, Operation


class OpenAiRoutes:
    """The handlers with what they need."""

    def __init__(
        self,
        calling: Calling,
        blobs: Blobs,
        authenticator: Authenticator,
        metrics: Metrics,
        *,
        clock: Clock,
        check_s: float,
        completions: Completions,
    ) -> None:
        self._completions = completions
        self._calling = calling
        self._blobs = blobs
        self._authenticator = authenticator
        self._metrics = metrics
        self._clock = clock
        self._check_s = check_s

    async def chat(self, asked: Asked) -> Response:
        """One completion, whole or streamed."""
        chat = openai_requests.read_chat(*await self._calling.fields(asked))
        if chat.stream:
            return await self._streamed(asked, chat)
        served = await self._calling.served(asked, chat.order)
        if served is None:
            return left()
        body = openai_answers.completion(served.output, chat.order.model, served.receipt, self._calling.now_s())
        return Response(body, 200, {"cache-control": "no-store", **headers_of(served.receipt)}, JSON)

    async def _streamed(self, asked: Asked, chat: Chat) -> Response:
        opened = await self._calling.opened(asked, chat.order)
        if opened is None:
            return left()
        first, pieces = opened
        now_s = self._calling.now_s()
        writer = openai_answers.ChunkWriter(call_id_of(asked), chat.order.model, now_s, chat.include_usage)
        feed = Feed(
            first,
            pieces,
            writer,
            caller=asked.caller,
            authenticator=self._authenticator,
            clock=self._clock,
            check_s=self._check_s,
            ended=spelling(self._metrics, asked.request_id, call_id_of(asked)),
            completions=self._completions,
        )
        return EventStream(feed.frames(), self._metrics, feed.close)

    async def embeddings(self, asked: Asked) -> Response:
        """Vectors, in the order of the texts."""
        order, form = openai_requests.read_embedding(*await self._calling.fields(asked))
        served = await self._calling.served(asked, order)
        if served is None:
            return left()
        found = openai_answers.embeddings(served.output, order.model, form, served.receipt.tokens)
        return answer(found, headers=headers_of(served.receipt))

    async def images(self, asked: Asked) -> Response:
        """Pictures, by address or by their bytes."""
        order, form = openai_requests.read_image(*await self._calling.fields(asked))
        served = await self._calling.served(asked, order)
        if served is None:
            return left()
        receipt = served.receipt
        at = str(asked.request.base_url).rstrip("/")
        urls = [f"{at}{artifact.url}" for artifact in receipt.artifacts]
        contents = [await self._blobs.read(artifact.sha256) for artifact in receipt.artifacts if form == "b64_json"]
        found = openai_answers.images(served.output, urls, contents, receipt.tokens, self._calling.now_s())
        return answer(found, headers=headers_of(receipt))

    async def speech(self, asked: Asked) -> Response:
        """The bytes of what was said, in the type that the supply made."""
        order = openai_requests.read_speech(*await self._calling.fields(asked))
        served = await self._calling.served(asked, order)
        if served is None:
            return left()
        spoken = _only_artifact(served.receipt)
        content = await self._blobs.read(spoken.sha256)
        return Response(content, 200, {"cache-control": "no-store", **headers_of(served.receipt)}, spoken.media_type)

    def operations(self) -> tuple[Operation, ...]:
        """What is served."""
        shared: dict[str, Any] = {"types": frozenset({JSON}), "parameters": call_schemas.HEADERS, "head": False}
        shared["holds"] = Hold.CALL
        codes = call_schemas.CODES
        return (
            Operation(
                "createChatCompletion", "POST", "/v1/chat/completions", self.chat,
                "One completion; with `stream`, server-sent events and `[DONE]`.", CALLERS,
                answer=openai_shapes.ChatCompletion, also_media=EVENT_STREAM, takes=call_schemas.CHAT, codes=codes,
                **shared,
            ),
            Operation(
                "createEmbeddings", "POST", "/v1/embeddings", self.embeddings, "Vectors of texts.", CALLERS,
                answer=openai_shapes.EmbeddingList, takes=call_schemas.EMBEDDING, codes=codes, **shared,
            ),
            Operation(
                "createImages", "POST", "/v1/images/generations", self.images, "Pictures of a prompt.", CALLERS,
                answer=openai_shapes.ImageList, takes=call_schemas.IMAGE, codes=codes, **shared,
            ),
            Operation(
                "createSpeech", "POST", "/v1/audio/speech", self.speech, "A text, spoken.", CALLERS,
                media="audio/*", takes=call_schemas.SPEECH, codes=codes, **shared,
            ),
        )  # fmt: skip


def _only_artifact(receipt: Receipt) -> ArtifactRef:
    if not receipt.artifacts:
        raise Fault.of("malformed_reply", "the call ended well, but nothing was spoken")
    return receipt.artifacts[0]
