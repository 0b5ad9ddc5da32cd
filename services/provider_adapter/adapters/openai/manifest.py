"""What the OpenAI dialect can do."""

from services.provider_adapter.domain.adapter import Auth, Manifest
from services.provider_adapter.domain.outcomes import JobState

CHAT_READ = frozenset(
    {
        "chat.id",
        "chat.choices[].message.content",
        "chat.choices[].message.refusal",
        "chat.choices[].message.tool_calls.*",
        "chat.choices[].message.function_call.*",
        "chat.choices[].message.audio.*",
        "chat.choices[].message.reasoning",
        "chat.choices[].message.reasoning_content",
        "chat.choices[].finish_reason",
        "chat.usage.prompt_tokens",
        "chat.usage.completion_tokens",
        "chat.usage.prompt_tokens_details.cached_tokens",
        "chat.usage.prompt_tokens_details.cache_write_tokens",
        "chat.usage.completion_tokens_details.reasoning_tokens",
        "chat.usage.prompt_tokens_details.audio_tokens",
        "chat.usage.prompt_tokens_details.image_tokens",
        "chat.usage.completion_tokens_details.audio_tokens",
        "delta.content",
        "delta.refusal",
        "delta.tool_calls.*",
        "delta.function_call.*",
        "delta.audio.*",
        "delta.reasoning",
        "delta.reasoning_content",
        "chat.usage.cost",
        "chat.usage.cost_details.*",
        "chat.usage.cost_in_usd_ticks",
        "embedding.data",
        "embedding.id",
        "embedding.usage.prompt_tokens",
        "embedding.usage.cost",
        "embedding.usage.cost_details.*",
    }
)
# Handed on to the caller with the rest of the answer, and nothing of ours depends on them.
CHAT_IGNORED = frozenset(
    {
        "chat.object",
        "chat.created",
        "chat.model",
        "chat.service_tier",
        "chat.system_fingerprint",
        "chat.metadata",
        "chat.moderation",
        "chat.provider",
        "chat.error",
        "chat.choices[].index",
        "chat.choices[].logprobs",
        "chat.choices[].native_finish_reason",
        "chat.choices[].stop_reason",
        "chat.choices[].message.role",
        "chat.choices[].message.annotations",
        "chat.choices[].message.reasoning_details",
        "chat.usage.total_tokens",
        "chat.usage.prompt_tokens_details.text_tokens",
        "chat.usage.completion_tokens_details.accepted_prediction_tokens",
        "chat.usage.completion_tokens_details.rejected_prediction_tokens",
        "chat.usage.completion_tokens_details.text_tokens",
        "chat.usage.is_byok",
        "chat.usage.num_sources_used",
        "chat.usage.queue_time",
        "chat.usage.prompt_time",
        "chat.usage.completion_time",
        "chat.usage.total_time",
        "chat.usage_breakdown",
        "chat.x_groq",
        "chat.timings",
        "chat.citations",
        "chat.search_results",
        "chat.prompt_logprobs",
        "chat.prompt_token_ids",
        "chat.kv_transfer_params",
        "chat.choices[].token_ids",
        "chat.usage.prompt_cache_hit_tokens",
        "chat.usage.prompt_cache_miss_tokens",
        "delta.role",
        "delta.annotations",
        "delta.obfuscation",
        "delta.reasoning_details",
        "embedding.object",
        "embedding.model",
        "embedding.usage.total_tokens",
    }
)

VIDEO_READ = frozenset(
    {
        "created.id",
        "task.id",
        "task.status",
        "task.error.*",
        "task.seconds",
        "task.size",
        "task.expires_at",
        "list.data.*",
        "list.has_more",
        "list.last_id",
    }
)
VIDEO_IGNORED = frozenset(
    {
        f"{operation}.{name}"
        for operation in ("created", "task")
        for name in (
            "object", "model", "progress", "prompt", "quality", "created_at", "completed_at", "remixed_from_video_id",
        )
    }
    | {f"created.{name}" for name in ("status", "error", "seconds", "size", "expires_at")}
    | {"list.object", "list.first_id"}
)  # fmt: skip

MANIFEST = Manifest(
    name="openai",
    kinds=("chat", "embedding", "image", "speech", "video"),
    synchronous_kinds=("chat", "embedding", "image", "speech"),
    streamed_kinds=("chat",),
    auth=Auth(),
    reconcile_by="list",  # of clips; the other kinds leave no records
    reconcile_offers=("idempotency_key",),
    cancels=False,
    limits={
        "chat: n": "1-128",
        "chat: stop": "up to 4 sequences",
        "embedding: inputs": "1-2048, each up to 8192 tokens, 300000 tokens together",
        "image: n": "1-10",
        "image: reference images": "up to 16, each below 50 MB",
        "image: prompt": "32000 characters (dall-e-3: 4000, dall-e-2: 1000)",
        "speech: text": "4096 characters",
        "video: duration": "4, 8 or 12 seconds",
        "video: size": "720p or 1024p, in 16:9 or 9:16",
        "video: reference images": "1",
    },
    cost_fields={
        "chat.usage.prompt_tokens": "input tokens",
        "chat.usage.prompt_tokens_details.cached_tokens": "cached input tokens",
        "chat.usage.completion_tokens": "output tokens",
        "chat.usage.cost": "USD, of OpenRouter",
        "chat.usage.cost_in_usd_ticks": "10^-10 USD, of xAI",
        "embedding.usage.prompt_tokens": "input tokens",
        "image.usage.output_tokens": "output tokens",
        "task.seconds": "seconds of video",
        "task.size": "resolution",
    },
    states={
        "queued": JobState.QUEUED,
        "in_progress": JobState.RUNNING,
        "completed": JobState.SUCCEEDED,
        "failed": JobState.FAILED,
        "cancelled": JobState.CANCELLED,  # OpenAI itself has no such word; servers that speak like it do
    },
    read_fields=CHAT_READ
    | VIDEO_READ
    | {
        "image.data[].b64_json",
        "image.data[].url",
        "image.data[].revised_prompt",
        "image.size",
        "image.quality",
        "image.usage.*",
    },
    ignored_fields=CHAT_IGNORED
    | VIDEO_IGNORED
    | {"image.created", "image.background", "image.output_format", "image.model", "image.object", "image.id"},
)
