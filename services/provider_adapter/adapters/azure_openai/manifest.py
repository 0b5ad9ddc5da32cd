"""What the Azure OpenAI dialect can do."""

from services.provider_adapter.adapters.openai.manifest import CHAT_IGNORED, CHAT_READ
from services.provider_adapter.domain.adapter import Auth, Manifest

DEFAULT_API_VERSION = "2024-10-21"

MANIFEST = Manifest(
    name="azure-openai",
    kinds=("chat", "embedding", "image", "speech"),
    synchronous_kinds=("chat", "embedding", "image", "speech"),
    streamed_kinds=("chat",),
    auth=Auth(header="api-key", prefix=""),
    reconcile_by="none",
    cancels=False,
    limits={
        "quota": "tokens and requests a minute, by deployment",
        "embedding: inputs": "1-2048, each up to 8192 tokens",
        "image: n": "1-10",
        "speech: text": "4096 characters",
    },
    cost_fields={
        "chat.usage.prompt_tokens": "input tokens",
        "chat.usage.prompt_tokens_details.cached_tokens": "cached input tokens",
        "chat.usage.completion_tokens": "output tokens",
        "embedding.usage.prompt_tokens": "input tokens",
        "image.usage.output_tokens": "output tokens",
    },
    read_fields=CHAT_READ
    | {
        "image.data[].b64_json",
        "image.data[].url",
        "image.data[].revised_prompt",
        "image.size",
        "image.quality",
        "image.usage.*",
    },
    ignored_fields=CHAT_IGNORED
    | {
        "chat.prompt_filter_results",
        "chat.choices[].content_filter_results",
        "chat.choices[].content_filter_offsets",
        "chat.choices[].content_filter_raw",
        "image.background",
        "image.created",
        "image.model",
        "image.output_format",
        "image.data[].content_filter_results",
        "image.data[].prompt_filter_results",
    },
)
