"""What never leaves this process in a log line, a message or a trace: secrets, keys, signed URLs, prompts (ERR-4).

Laws of this file:
- redaction is idempotent and never raises;
- it errs on the side of hiding: a harmless long token may be hidden, a secret may not be shown;
- free text is searched for secrets by shape (`redact`); structured fields are judged by name first (`redact_fields`).
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit, urlunsplit

HIDDEN = "[redacted]"
TEXT_LIMIT = 16_384

# Names (lower case, '-' as '_') whose values are secrets. Compared by whole words of the name, so `token_count` stays.
_SECRET_NAMES = frozenset({
    "authorization", "proxy_authorization", "cookie", "set_cookie", "api_key", "apikey", "x_api_key", "key",
    "admin_key", "secret", "secret_key", "secret_access_key", "client_secret", "password", "passwd", "token",
    "access_token", "refresh_token", "id_token", "session_token", "signature", "credential", "credentials",
    "private_key", "bearer", "x_goog_api_key", "x_amz_security_token", "database_url", "redis_url", "dsn",
})  # fmt: skip
# Names whose values are what a user wrote or drew: never logged, only their size.
_CONTENT_NAMES = frozenset({
    "prompt", "negative_prompt", "input", "inputs", "messages", "text", "content", "body", "request_body",
    "response_body", "base64", "b64_json", "image", "audio", "video", "instructions", "provider_message_raw",
})  # fmt: skip

_URL = re.compile(r"\b(?:https?|wss?|postgres(?:ql)?(?:\+\w+)?|rediss?|s3|gs)://[^\s\"'<>)\]}]+", re.IGNORECASE)
_SHAPES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b(Bearer|Basic|Key|Token)\s+[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE), r"\1 " + HIDDEN),
    (
        re.compile(
            r"((?:api[_-]?key|access[_-]?key|secret(?:[_-]?(?:access[_-]?)?key)?|password|passwd|token|authorization"
            r"|signature|client[_-]?secret|credential)[\"']?\s*[:=]\s*[\"']?)(?!\[redacted\])[^\s\"',;&}\]]{4,}",
            re.IGNORECASE,
        ),
        r"\1" + HIDDEN,
    ),
    (re.compile(r"\b(?:sk|pk|rk|pm|ak|ghp|gho|xox[abp]|r8)[-_][A-Za-z0-9_-]{8,}"), HIDDEN),
    (re.compile(r"\bAKIA[0-9A-Z]{12,}\b|\bAIza[0-9A-Za-z_-]{30,}"), HIDDEN),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*"), HIDDEN),
    (re.compile(r"\bdata:[\w.+/-]*(?:;[\w=.-]+)*;base64,[A-Za-z0-9+/=]*", re.IGNORECASE), "data:" + HIDDEN),
    (re.compile(r"-----BEGIN [A-Z ]+-----.*?(?:-----END [A-Z ]+-----|\Z)", re.DOTALL), HIDDEN),
    (re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{200,}={0,2}"), HIDDEN),
    (
        re.compile(r"(\"(?:negative_)?(?:prompt|text|content|input|instructions)\"\s*:\s*)\"(?:[^\"\\]|\\.)*\"?"),
        r'\1"' + HIDDEN + '"',
    ),
)


def redact_url(url: str) -> str:
    """The URL without user, password, query and fragment: scheme, host, port and path remain."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        hidden = f"{HIDDEN}@{host}" if "@" in parts.netloc else host
        return urlunsplit((parts.scheme, hidden, parts.path, HIDDEN if parts.query else "", ""))
    except ValueError:
        return HIDDEN


def redact(text: str) -> str:
    """Free text with everything hidden that looks like a secret, a signed URL or embedded media."""
    if not text:
        return text
    if len(text) > TEXT_LIMIT:
        text = text[:TEXT_LIMIT] + "…"
    text = _URL.sub(lambda match: redact_url(match.group()), text)
    for pattern, replacement in _SHAPES:
        text = pattern.sub(replacement, text)
    return text


def is_secret_name(name: str) -> bool:
    """Does a field or header of this name hold a secret?"""
    flat = name.lower().replace("-", "_")
    return flat in _SECRET_NAMES or any(flat.endswith("_" + part) for part in ("key", "secret", "password", "token"))


def redact_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a structured record: secrets and contents hidden by name, texts searched, nested values too."""
    return {name: _by_name(name, value) for name, value in fields.items()}


def _by_name(name: str, value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if is_secret_name(name):
        return HIDDEN
    if name.lower().replace("-", "_") in _CONTENT_NAMES:
        return f"[redacted {len(value)}]" if isinstance(value, (str, bytes, Sequence, Mapping)) else HIDDEN
    return _value(value)


def _value(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, bytes):
        return f"[{len(value)} bytes]"
    if isinstance(value, Mapping):
        return redact_fields({str(name): item for name, item in value.items()})
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_value(item) for item in value]
    return redact(str(value))
