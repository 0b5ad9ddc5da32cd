"""What the Gemini dialect can do."""

import re
from urllib.parse import quote

from services.provider_adapter.domain.adapter import Auth, Manifest
from services.provider_adapter.domain.outcomes import JobState

NAME = "google"
RUNNING, DONE, BROKEN = "done: false", "response", "error"


def model_path(model: str, action: str) -> str:
    """The path of one action of a model, which may be named with or without `models/`."""
    return f"/models/{quote(model.removeprefix('models/'), safe='-._~')}:{action}"


_OPERATION = re.compile(r"[\w.-]+/[\w.-]+/operations/[\w.-]+")


def operation_path(name: str) -> str:
    """The path of one operation. A name that is none stays one segment."""
    return f"/{name}" if _OPERATION.fullmatch(name) and ".." not in name else f"/{quote(name, safe='')}"


MANIFEST = Manifest(
    name=NAME,
    kinds=("chat", "embedding", "video"),
    synchronous_kinds=("chat", "embedding"),
    streamed_kinds=("chat",),
    auth=Auth(header="x-goog-api-key", prefix=""),
    reconcile_by="none",
    cancels=False,
    materials="base64",
    limits={
        "chat: request with inline data": "20 MB",
        "chat: n": "1-8",
        "chat: stop": "up to 5 sequences",
        "chat: reasoning_effort": "gemini-2.5: a budget of tokens; from gemini-3 on: minimal, low, medium or high",
        "embedding: inputs": "1-100, each up to 2048 tokens",
        "video: duration": "4, 6 or 8 seconds",
        "video: resolution": "720p, 1080p or 4k, by model",
        "video: ratio": "16:9 or 9:16",
        "video: reference images": "1-3",
    },
    cost_fields={
        "answer.usageMetadata.promptTokenCount": "input tokens",
        "answer.usageMetadata.cachedContentTokenCount": "cached input tokens",
        "answer.usageMetadata.candidatesTokenCount": "output tokens without thinking",
        "answer.usageMetadata.thoughtsTokenCount": "thinking tokens",
        "input.duration_s": "seconds of video",
    },
    states={RUNNING: JobState.RUNNING, DONE: JobState.SUCCEEDED, BROKEN: JobState.FAILED},
    read_fields=frozenset(
        {
            "answer.candidates[].content.parts[].text",
            "answer.candidates[].content.parts[].thought",
            "answer.candidates[].content.parts[].thoughtSignature",
            "answer.candidates[].content.parts[].functionCall.name",
            "answer.candidates[].content.parts[].functionCall.args.*",
            "answer.candidates[].finishReason",
            "answer.candidates[].index",
            "answer.promptFeedback.blockReason",
            "answer.usageMetadata.promptTokenCount",
            "answer.usageMetadata.cachedContentTokenCount",
            "answer.usageMetadata.candidatesTokenCount",
            "answer.usageMetadata.thoughtsTokenCount",
            "answer.usageMetadata.toolUsePromptTokenCount",
            "answer.usageMetadata.promptTokensDetails.*",
            "answer.usageMetadata.candidatesTokensDetails.*",
            "answer.modelVersion",
            "answer.responseId",
            "embedding.embeddings[].values",
            "embedding.usageMetadata.promptTokenCount",
            "created.name",
            "operation.done",
            "operation.error.*",
            "operation.response.generateVideoResponse.generatedSamples[].video.uri",
            "operation.response.generateVideoResponse.raiMediaFilteredCount",
            "operation.response.generateVideoResponse.raiMediaFilteredReasons",
        }
    ),
    ignored_fields=frozenset(
        {
            "answer.candidates[].content.role",
            "answer.candidates[].content.parts[].functionCall.id",
            "answer.candidates[].avgLogprobs",
            "answer.candidates[].citationMetadata",
            "answer.candidates[].finishMessage",
            "answer.candidates[].groundingMetadata",
            "answer.candidates[].logprobsResult",
            "answer.candidates[].safetyRatings",
            "answer.candidates[].tokenCount",
            "answer.candidates[].urlContextMetadata",
            "answer.createTime",
            "answer.modelStatus",
            "answer.promptFeedback.safetyRatings",
            "answer.promptFeedback.blockReasonMessage",
            "answer.usageMetadata.cacheTokensDetails",
            "answer.usageMetadata.serviceTier",
            "answer.usageMetadata.toolUsePromptTokensDetails",
            "answer.usageMetadata.totalTokenCount",
            "answer.usageMetadata.trafficType",
            "embedding.embeddings[].shape",
            "embedding.usageMetadata.promptTokenDetails",
            "embedding.usageMetadata.promptTokensDetails",
            "created.metadata",
            "created.done",
            "operation.name",
            "operation.metadata",
            "operation.response.@type",
            "operation.response.generateVideoResponse.generatedSamples[].video.mimeType",
        }
    ),
)
