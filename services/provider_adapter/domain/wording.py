"""By which words providers in general say what is wrong.

Laws of this file:
- strong words (`vocabulary`) prove a thing; weak words are what providers also put around other failures
  ("invalid_request_error" around a moderation refusal), so they are asked only when no strong word was found;
- a code is asked in words: `InputTextSensitiveContentDetected` reads "input text sensitive content detected".
"""

import re
from functools import lru_cache

from services.provider_adapter.domain.vocabulary import STRONG, Word, word

WEAK = (
    word(
        "task_lost",
        "^(task )?unknown$",
    ),
    word(
        "account_forbidden",
        "permission",
        "forbidden",
        "access denied",
        "not authorized",
        "unauthorized (operation|access)",
        "not allowed",
    ),
    word(
        "model_unavailable",
        "model.{0,20}(unavailable|not available)",
    ),
    word(
        "provider_error",
        r"no (media|image|video|output)\w* (was |were )?generated",
        r"generation timed? ?out",
        r"downstream",
        "maintenance",
        "推理服务|服务(异常|内部错误)|内部错误",
        "internal",
        "server error",
        "system error",
        "(unexpected|invalid|malformed|empty) response",
        "unexpected error",
        r"\bapi error",
        "service (is )?(temporarily )?unavailable",
        "unavailable",
        "backend",
        r"algo\b",
        "rpc",
        "upload",
        "inner error",
        "third party",
        "bad output",
        "unknown error",
        "disconnected",
        "connection error",
        "network error",
        "no healthy upstream",
        "generation failed",
        "(video|image|task) (generation )?failed",
        "server_error",
        "platform",
    ),
    word(
        "rate_limited",
        "quota",
        "exhausted",
        "limit exceeded",
        "limitexceeded",
        "capacity",
    ),
    word(
        "invalid_request",
        "invalid",
        "validation",
        "missing",
        "bad ?request",
        "parameter",
        "unprocessable",
        "malformed",
        "must be",
        "should be",
        "not valid",
        "is required",
        "not match",
        "not support",
        "unsupported",
        "illegal",
        "参数",
    ),
)


def strong(text: str) -> str:
    """The code of ours that these words prove, "" when none does."""
    return _first(STRONG, text)


def weak(text: str) -> str:
    """The code of ours that these words suggest, "" when none does."""
    return _first(WEAK, text)


@lru_cache(maxsize=4096)
def in_words(code: str) -> str:
    """A code as words: camel case and separators opened, lower case."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", code)
    return re.sub(r"[\s._:/-]+", " ", spaced).strip().lower()


def names_in(text: str) -> list[str]:
    """The names that stand in a text as one word (`ContentPolicyViolationError`), each as words, at most five."""
    return [in_words(name) for name in re.findall(r"(?:[A-Z][a-z]+){2,}", text)[:5]]


def _first(words: tuple[Word, ...], text: str) -> str:
    return next((line.ours for line in words if line.pattern.search(text)), "")
