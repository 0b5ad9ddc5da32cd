"""Chat and embeddings in the OpenAI dialect."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from decimal import Decimal

from starlette.responses import JSONResponse, Response

from services.studio.desk import Desk
from services.studio.dialects import openai, openai_chat, openai_embeddings
from services.studio.domain import markers, responder, tokens, vectors
from services.studio.domain.accounts import Account, Model
from services.studio.domain.chat import CONTENT_FILTER, STOP, Answer, ChatJob, Piece
from services.studio.domain.jobs import ABANDONED, FAILED, SUCCEEDED
from services.studio.domain.pace import Pace, pace_of
from services.studio.domain.prices import token_charge
from services.studio.domain.script import NEVER, Flow
from services.studio.engines.shelf import Talker
from services.studio.routes.accepted import Accepted
from services.studio.routes.connection import silence
from services.studio.routes.door import Call, check_prompt, model_of
from services.studio.routes.live import Live, in_turn

CLIENT_CLOSED = 499
"""The status of an answer that nobody is there to read."""
SSE = "text/event-stream"


class TalkRoutes:
    """The handlers; each runs behind a Door."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._shelf = desk.shelf

    async def chat(self, call: Call) -> Response:
        """POST a conversation: its next message, in one piece or as it is said."""
        model = model_of(call, "chat")
        job = openai_chat.read_chat(call.body, model)
        check_prompt(call, job.question)
        talker = None if responder.calls_tool(job) else self._shelf.talker
        kept = call.account.honours_keys  # whoever asks again wants the whole answer
        if talker is not None and job.stream and job.n == 1 and call.step.hears_as_made and not kept:
            return self._as_made(call, model, job, talker)
        answer = await _gathered(talker.say(job)) if talker is not None else responder.answer(job)
        answer = befallen(answer, job.question, call.account, call.step.flow)
        settle = self._taken_on(call, model, job, len(answer.tokens) * job.n)
        try:
            return await self._said(call, job, answer, settle)
        except BaseException:
            settle(FAILED, 0)
            raise

    async def embeddings(self, call: Call) -> Response:
        """POST texts: their vectors, in the order of the texts."""
        model = model_of(call, "embedding")
        job = openai_embeddings.read_embedding(call.body, model)
        check_prompt(call, "\n".join(job.texts))
        charge, usage = token_charge(model.price, job.prompt_tokens), {"prompt_tokens": job.prompt_tokens}
        accepted = Accepted(self._desk, call, "embedding", model, charge)
        try:
            if not call.step.unheard and await silence(call.request, pace_of(call.account, call.step.flow).due(1)):
                accepted.settle(ABANDONED, charge, usage)
                return Response(status_code=CLIENT_CLOSED)
            made = await asyncio.to_thread(self._vectors, job, model)
            accepted.settle(SUCCEEDED, charge, usage)
            return JSONResponse(openai_embeddings.embedding_view(model.id, job, made))
        except BaseException:
            accepted.settle(FAILED, charge, usage)
            raise

    def _taken_on(self, call: Call, model: Model, job: ChatJob, whole: int) -> Callable[[str, int], None]:
        """Accepts the job; what is given back settles it with its end and how many of its tokens were said."""
        thought = job.reasoning_tokens * job.n

        def charge(said: int) -> Decimal:
            return token_charge(model.price, job.prompt_tokens, thought + said)

        accepted = Accepted(self._desk, call, "chat", model, charge(whole))

        def settle(end: str, said: int) -> None:
            usage = {"prompt_tokens": job.prompt_tokens, "completion_tokens": thought + said}
            if said < whole and end != SUCCEEDED:
                usage["unsaid_tokens"] = whole - said
            accepted.settle(end, charge(said), usage)

        return settle

    async def _said(self, call: Call, job: ChatJob, answer: Answer, settle: Callable[[str, int], None]) -> Response:
        step, whole = call.step, len(answer.tokens) * job.n
        pace = pace_of(call.account, step.flow, job.reasoning_tokens * job.n)
        envelope = self._envelope(job)
        chunks = list(openai_chat.chunks(envelope, job, [answer] * job.n)) if job.stream else []
        if job.stream and not step.unheard:
            live = Live(in_turn(chunks), pace, step, _error(call), settle, total=whole)
            live.body = b"".join(chunk.data for chunk in chunks)
            return live
        said = await self._left_after(call, pace, whole)
        if said is not None:
            settle(ABANDONED, said)
            return Response(status_code=CLIENT_CLOSED)
        settle(SUCCEEDED, whole)
        if job.stream:
            return Response(b"".join(chunk.data for chunk in chunks), media_type=SSE)
        return JSONResponse(openai_chat.chat_view(envelope, job, [answer] * job.n))

    def _as_made(self, call: Call, model: Model, job: ChatJob, talker: Talker) -> Response:
        """A stream of what a model says while it says it; nobody knows how long that will be."""
        settle = self._taken_on(call, model, job, job.max_tokens)
        chunks = openai_chat.chunks_as_made(self._envelope(job), job, talker.say(job))
        return Live(chunks, pace_of(call.account, call.step.flow), call.step, _error(call), settle)

    def _envelope(self, job: ChatJob) -> openai_chat.Envelope:
        return openai_chat.Envelope(f"chatcmpl-{secrets.token_hex(12)}", job.model, int(self._desk.now()))

    def _vectors(self, job: openai_embeddings.EmbeddingJob, model: Model) -> list[tuple[float, ...]]:
        if self._shelf.embedder is not None:
            return self._shelf.embedder.embedded(job.texts, job.dimensions)
        return [vectors.embedded(text, model.id, model.dimensions, job.dimensions) for text in job.texts]

    async def _left_after(self, call: Call, pace: Pace, whole: int) -> int | None:
        """Takes the time of the answer; the tokens made when the caller hung up, or None if they did not."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        if pace.due(whole) <= 0 or not await silence(call.request, pace.due(whole)):
            return None
        return pace.said(loop.time() - begun, whole)


def befallen(answer: Answer, question: str, account: Account, flow: Flow) -> Answer:
    """The answer as moderation and the script leave it."""
    if flow.refusal:
        return Answer(tokens.pieces(flow.refusal), STOP, refused=True)
    mark = flow.content_filter_after
    if mark == NEVER and markers.late(question, account.real_person) is not None:
        mark = len(answer.tokens) // 2
    if mark == NEVER:
        return answer
    return replace(answer, tokens=answer.tokens[:mark], finish=CONTENT_FILTER)


async def _gathered(pieces: AsyncGenerator[Piece, None]) -> Answer:
    """The whole answer of a model."""
    said, finish = [], STOP
    async for piece in pieces:
        said += [piece.text] if piece.text else []
        finish = piece.finish or finish
    return Answer(tuple(said), finish)


def _error(call: Call) -> bytes:
    """The event that breaks a stream off where the script says so."""
    step = call.step
    body = openai.scripted(500, step.code, step.message or "The server had an error.", call.request_id)
    return openai_chat.sse(body)
