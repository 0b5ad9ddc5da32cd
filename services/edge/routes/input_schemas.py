"""What `input` of `POST /v1/runs` and `/v1/invoke` may hold, by kind of model, for the OpenAPI document.

Routing judges it; here it is told. A test holds the names against those that routing takes.
"""

from typing import Any

MATERIAL: dict[str, Any] = {
    "description": "A file that goes in: by address, by the digest of an artifact, or as bytes.",
    "anyOf": [
        {
            "type": "object",
            "additionalProperties": False,
            "required": ["url"],
            "properties": {"url": {"type": "string", "description": "http or https, at most 8192 characters."}},
        },
        {
            "type": "object",
            "additionalProperties": False,
            "required": ["artifact"],
            "properties": {"artifact": {"type": "string", "description": "SHA-256, from `POST /v1/artifacts`."}},
        },
        {
            "type": "object",
            "additionalProperties": False,
            "required": ["base64"],
            "properties": {
                "base64": {"type": "string", "description": "The bytes in base64; kept as an artifact at once."},
                "media_type": {"type": "string", "description": "For example image/png; the bytes tell what they are."},
            },
        },
    ],
}


def _material(tells: str) -> dict[str, Any]:
    return {"description": tells, "$ref": "#/components/schemas/Material"}


def _materials(tells: str) -> dict[str, Any]:
    return {"type": "array", "description": tells, "items": {"$ref": "#/components/schemas/Material"}}


def _text(tells: str) -> dict[str, Any]:
    return {"type": "string", "description": tells}


def _seed() -> dict[str, Any]:
    return {"type": "integer", "description": "The same seed tends to the same result, where the supply has one."}


SUBTITLE: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["start_s", "end_s", "text"],
    "properties": {
        "start_s": {"type": "number", "minimum": 0, "description": "Seconds from the beginning of the film."},
        "end_s": {"type": "number", "description": "After start_s; lines do not overlap."},
        "text": {"type": "string", "minLength": 1, "maxLength": 1000},
    },
}
VIDEO: dict[str, Any] = {
    "type": "object",
    "description": "Input of a model of kind `video`. A prompt, a frame, a reference or clips are needed.",
    "additionalProperties": False,
    "properties": {
        "prompt": _text("What is to be seen."),
        "reference_images": _materials("Pictures to go by; the model says how many."),
        "reference_videos": _materials("Clips to go by."),
        "reference_audios": _materials("Sounds to go by."),
        "first_frame": _material("The picture that it begins with."),
        "last_frame": _material("The picture that it ends with."),
        "clips": _materials(
            "The clips of a film, joined in this order; then nothing is drawn, and no prompt goes with it."
        ),
        "narration": {
            "type": "array",
            "description": "Voices over the clips, one for each, null where one has none; or one over the whole film.",
            "items": {"anyOf": [{"$ref": "#/components/schemas/Material"}, {"type": "null"}]},
        },
        "subtitles": {
            "type": "array",
            "description": "Lines to read in the film: a text for each clip, empty for none; or lines with times.",
            "items": {"anyOf": [{"type": "string", "maxLength": 1000}, SUBTITLE]},
        },
        "duration_s": {
            "type": "number",
            "exclusiveMinimum": 0,
            "description": "Seconds. 5 where absent, moved into the model's limits.",
        },
        "resolution": _text("For example 720p. Absent: the provider's own choice."),
        "ratio": _text("For example 16:9. Absent: the provider's own choice."),
        "audio": {
            "type": "boolean",
            "description": "With sound, or without; only supplies that can be told are asked. Absent: the provider's "
            "own choice.",
        },
        "seed": _seed(),
        "real_person": {
            "type": "boolean",
            "description": "True if a real person is shown; then only supplies that allow it are asked.",
        },
    },
}
IMAGE: dict[str, Any] = {
    "type": "object",
    "description": "Input of a model of kind `image`.",
    "additionalProperties": False,
    "required": ["prompt"],
    "properties": {
        "prompt": _text("What is to be seen."),
        "reference_images": _materials("Pictures to go by; the model says how many."),
        "size": _text("WIDTHxHEIGHT in pixels, for example 1280x720, or auto, 1k, 2k, 4k."),
        "n": {"type": "integer", "minimum": 1, "default": 1, "description": "How many pictures."},
        "seed": _seed(),
    },
}
SPEECH: dict[str, Any] = {
    "type": "object",
    "description": "Input of a model of kind `speech`.",
    "additionalProperties": False,
    "required": ["text"],
    "properties": {
        "text": _text("What is to be said; the model says how long it may be."),
        "voice": _text("For example alloy; the model says which. Absent: the provider's own choice."),
        "format": {
            "enum": ["mp3", "opus", "aac", "flac", "wav", "pcm"],
            "description": "How the sound is packed; the model says which. Absent: mp3.",
        },
        "speed": {
            "type": "number",
            "minimum": 0.25,
            "maximum": 4,
            "description": "1 is the voice's own pace, which is that of an absent one.",
        },
    },
}
CHAT: dict[str, Any] = {
    "type": "object",
    "description": "Input of a model of kind `chat`: OpenAI's fields, passed on to the supply in its own dialect.",
    "additionalProperties": False,
    "required": ["messages"],
    "properties": {
        "messages": {
            "type": "array",
            "description": "The conversation. Addresses of pictures must be public.",
            "items": {"type": "object", "required": ["role"], "properties": {"role": {"type": "string"}}},
        },
        "audio": {"type": "object"},
        "frequency_penalty": {"type": "number"},
        "function_call": {},
        "functions": {"type": "array"},
        "logit_bias": {"type": "object"},
        "logprobs": {"type": "boolean"},
        "max_completion_tokens": {"type": "integer", "minimum": 1},
        "max_tokens": {"type": "integer", "minimum": 1},
        "metadata": {"type": "object"},
        "modalities": {"type": "array"},
        "n": {"type": "integer", "minimum": 1, "description": "How many choices; each is paid for."},
        "parallel_tool_calls": {"type": "boolean"},
        "prediction": {"type": "object"},
        "presence_penalty": {"type": "number"},
        "reasoning_effort": {"type": "string"},
        "response_format": {"type": "object"},
        "seed": _seed(),
        "service_tier": {"type": "string"},
        "stop": {},
        "store": {"type": "boolean"},
        "stream": {"type": "boolean"},
        "stream_options": {"type": "object"},
        "temperature": {"type": "number"},
        "tool_choice": {},
        "tools": {"type": "array"},
        "top_logprobs": {"type": "integer"},
        "top_p": {"type": "number"},
        "user": {"type": "string"},
        "verbosity": {"type": "string"},
    },
}
EMBEDDING: dict[str, Any] = {
    "type": "object",
    "description": "Input of a model of kind `embedding`.",
    "additionalProperties": False,
    "required": ["input"],
    "properties": {
        "input": {"type": ["string", "array"], "description": "A text, or a list of texts."},
        "dimensions": {
            "type": "integer",
            "minimum": 1,
            "description": "Length of the vectors.",
        },
        "encoding_format": {"type": "string", "description": "How vectors are spelt: float or base64."},
        "user": {"type": "string"},
    },
}
OCR: dict[str, Any] = {
    "type": "object",
    "description": "Input of a model of kind `ocr`.",
    "additionalProperties": False,
    "required": ["image"],
    "properties": {
        "image": _material("The picture with the text."),
        "task": {"type": "string", "description": "recognize_text, or parse_layout for the kinds of its blocks."},
    },
}
SCHEMAS: dict[str, dict[str, Any]] = {
    "Material": MATERIAL,
    "VideoInput": VIDEO,
    "ImageInput": IMAGE,
    "SpeechInput": SPEECH,
    "ChatInput": CHAT,
    "EmbeddingInput": EMBEDDING,
    "OcrInput": OCR,
}


def _by_kind(*names: str) -> dict[str, Any]:
    told = ", ".join(f"`{name}`" for name in names)
    references = [{"$ref": f"#/components/schemas/{name}"} for name in names]
    return {"description": f"By the kind of the model: {told}.", "anyOf": references}


INPUT = _by_kind("VideoInput", "ImageInput", "SpeechInput")
CALL_INPUT = _by_kind("ChatInput", "EmbeddingInput", "ImageInput", "SpeechInput", "OcrInput")
