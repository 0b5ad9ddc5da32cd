"""Calls in the OpenAI dialect that are answered in JSON: chat completions and embeddings."""

from collections.abc import Mapping
from dataclasses import dataclass

from services.provider_adapter.adapters.openai import chat, embeddings
from services.provider_adapter.adapters.openai.dialect import Dialect
from services.provider_adapter.domain.calls import Answered, StreamReader
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse
from services.provider_adapter.domain.job import Endpoint, Job


@dataclass(frozen=True, slots=True)
class OpenAICall:
    """The part `call` of a dialect."""

    dialect: Dialect

    def build(self, job: Job, endpoint: Endpoint) -> HttpRequest:
        """The request of one call. Raises Fault for an input without what every server needs."""
        if job.kind == "embedding":
            return self.dialect.post(embeddings.PATH, embeddings.body_of(job), job, endpoint, fresh=False)
        return self.dialect.post(chat.PATH, chat.body_of(job, streamed=False), job, endpoint, fresh=False)

    def parse(self, response: HttpResponse, job: Job) -> Answered:
        """What the answer gave. Raises Fault for a refusal, and for an answer that proves nothing."""
        if job.kind == "embedding":
            return embeddings.parse(response, job, self.dialect)
        return chat.parse(response, self.dialect)


@dataclass(frozen=True, slots=True)
class OpenAIStream:
    """The part `stream` of a dialect."""

    dialect: Dialect

    def build(self, job: Job, endpoint: Endpoint) -> HttpRequest:
        """The request of one streamed completion."""
        return self.dialect.post(chat.PATH, chat.body_of(job, streamed=True), job, endpoint, fresh=False)

    def reader(self, job: Job, headers: Mapping[str, str]) -> StreamReader:
        """A reader of its chunks."""
        return chat.ChunkReader(job, headers, self.dialect)
