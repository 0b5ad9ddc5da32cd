"""What the OpenAI dialect can do."""

from services.provider_adapter.domain.adapter import Auth, Manifest

IMAGES = "/images/generations"
EDITS = "/images/edits"
SPEECH = "/audio/speech"

MANIFEST = Manifest(
    name="openai",
    kinds=("image", "speech"),
    synchronous_kinds=("image", "speech"),
    auth=Auth(),
    reconcile_by="none",
    reconcile_offers=("idempotency_key",),
    cancels=False,
    read_fields=frozenset(
        {
            "image.data[].b64_json",
            "image.data[].url",
            "image.data[].revised_prompt",
            "image.size",
            "image.quality",
            "image.usage.*",
        }
    ),
    ignored_fields=frozenset(
        {"image.created", "image.background", "image.output_format", "image.model", "image.object", "image.id"}
    ),
)
