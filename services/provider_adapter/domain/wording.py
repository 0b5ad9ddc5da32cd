"""By which words providers in general say what is wrong.

Laws of this file:
- strong words (`vocabulary`) prove a thing; weak words are what providers also put around other failures
  ("invalid_request_error" around a moderation refusal), so they are asked only when no strong word was found;
- a code is asked in words: `InputTextSensitiveContentDetected` reads "input text sensitive content detected";
- what a message quotes, and the field that it names, are the caller's own words and prove nothing: a request with the
  value 'banned' must not look as if the account were.
"""

import re
from functools import lru_cache

from services.provider_adapter.domain.vocabulary import STRONG
from services.provider_adapter.domain.words import Word, word

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
        "cuda|out of memory|memory access|segmentation fault|nan in output",
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

LEAST_PARAM = 3
"""Characters of a field's name below which it is too much like any word."""
SENTENCE = 3
MODEL = "model"
BEFORE = 60
"""Characters before a quotation that say what it is: a message of nothing but quotes is read in no time, too."""
_QUOTED = re.compile(r"(?<!\w)(?:'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`|“[^”\n]*”|‘[^’\n]*’|«[^»\n]*»|「[^」\n]*」)(?!\w)")
_VALUE = re.compile(
    r"\b(values?|parameters?|fields?|arguments?|property|properties|keys?|got|received|input|prompt|text):$"
)
_RULE = re.compile(r"\b(error|reason|code|status|limit|metric|quota|polic(y|ies)|categor(y|ies))( of| is|:)?$")
_NO_MONEY = re.compile(
    r"insufficient (\w+ )?(balance|credit|fund)|(balance|credits?) (is |are )?(exhausted|depleted|too low|insufficient)"
    r"|out of credit|top up|recharge|余额不足|欠费"
)
_NAMED_FIELD = re.compile(r"(?i)\b(parameters?|fields?|arguments?|property|option)\b((?: \w+)?:? )[a-z]\w*_[\w.\[\]]+")


def strong(text: str) -> str:
    """The code of ours that these words prove, "" when none does."""
    return _first(STRONG, text)


def bills(message: str) -> bool:
    """Whether a message says that money is missing, which no waiting brings."""
    return _NO_MONEY.search(message.lower()) is not None


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


def provider_s_own(message: str, param: str = "") -> str:
    """A message in lower case without what it only repeats: quoted values, the field `param`, a field that it names.

    A quoted name of a rule stays, and a quoted sentence that somebody said (`upstream: "rate limit reached"`). The
    field is a word of its own: `text` leaves "context length" as it is. Words about the model stay, field or not.
    """
    text = _QUOTED.sub(lambda found: found[0] if _tells(found) else "'x'", message)
    if len(param) >= LEAST_PARAM and param.lower() != MODEL:
        text = re.sub(rf"(?<!\w){re.escape(param)}(?!\w)", "x", text)
    return _NAMED_FIELD.sub(r"\1\2x", text).lower().replace("_", " ")


def _tells(quoted: re.Match[str]) -> bool:
    """Whether a quotation is the provider's word: the name of a rule or an error, or what another said."""
    before = quoted.string[max(quoted.start() - BEFORE, 0) : quoted.start()].rstrip().lower()
    if _RULE.search(before):
        return True
    speech = not before or (before.endswith((":", "：")) and not _VALUE.search(before))
    return speech and len(quoted[0].split()) >= SENTENCE


def _first(words: tuple[Word, ...], text: str) -> str:
    return next((line.ours for line in words if line.pattern.search(text)), "")
