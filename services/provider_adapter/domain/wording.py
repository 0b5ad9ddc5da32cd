"""The words by which providers in general say what is wrong: one ordered vocabulary for codes and for messages.

Laws of this file:
- earlier lines win: the more particular meaning stands before the more general one;
- `STRONG` words prove a thing wherever they stand; `WEAK` words are what providers also put around other failures
  ("invalid_request_error" around a moderation refusal), so they are asked only when no strong word was found;
- a code is asked in words: `InputTextSensitiveContentDetected` reads "input text sensitive content detected".
"""

import re
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class Word:
    """A pattern over lower-case text, and the code of our registry that it proves."""

    pattern: re.Pattern[str]
    ours: str


def _words(*lines: tuple[str, str]) -> tuple[Word, ...]:
    return tuple(Word(re.compile(pattern), ours) for ours, pattern in lines)


# A submission that the provider has seen before, or a call that its own proxy gave up: nothing is proved.
UNPROVEN = "submission_unknown"

STRONG = _words(
    ("task_lost", r"\b(task|job|batch|prediction|request|video|generation|result|operation|creation)s?\b[^.]{0,60}"
                  r"\b(not found|not founed|does not exist|no longer exists?|unknown id)|job not found|任务不存在"
                  r"|^(task|job|request) (not exist|unknown)"),
    (UNPROVEN, r"already have a request|duplicate (request|id|task)|request cancell?ed by client|client closed request"),
    ("real_person_rejected", r"real (person|people|human)|privacy information|privacyinformation|another person without"
                             r"|public figure|celebrit|likeness|真人|人脸隐私"),
    ("content_rejected",
     r"sensitive|moderat(ed|ion)|content[ _]polic|content[ _](filter|check|block|moderation|violat)|safety (system|filter"
     r"|polic|guideline|input|output|check|violation)|^(image |input preprocessing )?safety\b|nsfw|prohibited content"
     r"|policy violation|violat\w* (our |the |of )*(usage |content |community )?(polic|guideline|terms)|usage polic"
     r"|risk (detection|control)|inappropriate (content)?|infringement|copyright|data inspection failed|illegal detected"
     r"|audit submit illegal|responsible ai|flagged|blocklist|recitation|^refusal$|refused to (generate|answer)"
     r"|harmful content|unsafe content|违法违规|违规|敏感|不安全|审核(不通过|失败|未通过)|内容安全"),
    ("balance_exhausted",
     r"insufficient[ _](user )?(balance|credit|quota|fund)|(balance|credit)s?( balance)? (is |are |was )?(too low|insufficient"
     r"|exhausted|depleted|not enough)|(exhausted|depleted|low|negative) (your )?(balance|credit)|arrear|overdue|payment"
     r" (is )?required|paid plan required|billing (error|hard limit|not active|limit|issue|information|is not active)"
     r"|prepayment credit|spend(ing)? limit|(no|\d+|more) credits remaining|requires more credits|lack sufficient credits"
     r"|(free )?resource pack (exhausted|depleted)|charge status|top up your|please (recharge|top up)|key limit exceeded"
     r"|out of credits?|欠费|余额(不足|已用尽)|剩余额度|资源包余量已用尽|充值"),
    ("account_forbidden",
     r"unsupported country|country, region|(user )?location is not supported|region (is )?not (supported|allowed)|ip"
     r" (address )?(is )?(not (in|on) )?(the )?white ?list|account (is |has )?(currently )?(inactive|locked|suspended"
     r"|disabled|abnormal|banned|irregular)|irregular activit|unusual activity|workspace access denied|user un ?auth"
     r"|未实名|停服|stop using|banned|attention required"),
    ("model_unavailable",
     r"model\w*\b[^.]{0,60}\b(not found|not exist|does not exist|do not exist|no longer|unavailable|is disabled|disabled"
     r"|not available|access denied|has been (deprecated|retired)|decommissioned|taken offline|not open|not activated)"
     r"|not activated the model|(invalid|unsupported|unknown) model\b|model not supported|(deployment|endpoint|application"
     r"|engine)s?\b[^.]{0,60}\b(not found|does not exist|closed endpoint)|no (available )?(endpoints?|channels?) (found )?for"
     r"|no available channel|service not open|(api|service)\b.{0,40}\b(taken offline|has been retired)|version does not exist"
     r"|(have|has|with) (no |not |access to (the |this )?)(access to )?(the )?model|verified to use the model|plan"
     r" (does not|lacks)|(does )?not yet include access|has no service|unpurchased|eligible for using the model"
     r"|is opening|unauthorized access to requested resource|(api|model) \S{1,60} does not exist|is not found for api"
     r"|不支持的模型|无可用渠道|无权访问模型|模型不存在|正在开通|未开通"),
    ("key_invalid",
     r"(api|access|secret|subscription)[ _-]?key\b.{0,24}(not valid|invalid|is invalid|expired|revoked|reported as leaked"
     r"|missing|not found|disabled|unauthorized)|(invalid|incorrect|wrong|missing|expired|no) (api|access|subscription|auth)"
     r"[ _-]?(key|token|credential)|invalid (authentication )?(token|credential|authorization|key|signature)|authentication"
     r" (failed|error|failure|fails)|authentication token|unauthenticated|no auth credentials|access token\b.{0,40}(expired"
     r"|invalid|missing)|token expired|authorization (is|has|was) (invalid|expired|not yet valid|missing)|valid"
     r" authentication token|needs authorization|missing permissions|signature (failure|expire|does not match)"
     r"|auth failure|api[ _-]?key invalid|无效的令牌|令牌(已过期|无效)|鉴权失败"),
    ("out_of_stock",
     r"sold out|out of stock|no (machine|gpu|capacity|runner|instance)s?( is| are| was)?( could be)? (free|available"
     r"|allocated)|no runner|runner scheduling|startup timeout|start in time|resource (is )?insufficient|资源不足|no free"
     r" (gpu|machine)|^expired$"),
    ("rate_limited",
     r"rate[ _-]?limit|too many (requests|concurrent|tasks|connections)|throttl|concurren\w*\b.{0,40}(limit|exceed|reduc"
     r"|too|usage)|queue (is )?(full|maxed)|task queue|overload|slow down|high (traffic|concurrency|frequency|demand)"
     r"|(server|system|service|model)s? (is |are )?(too )?busy|capacity (exceeded|reached)|tier capacity|(requests?|tokens?"
     r"|images?) per (min|second|day|hour)|\b(tpm|rpm|ipm|qps)\b|call limit|daily (task |call )?limit|usage (limit|quota)"
     r"|(request|job|task|parallel|active task)\w*\b.{0,40}\b(limit exceeded|num exceed|over\b.*limit)|limit requests"
     r"|maximum number of (active|queued|running|concurrent)|(per|parallel) task over|burst|request limit reached"
     r"|limit (was |is |has been )?(reached|exceeded)|requests? (is )?too (fast|frequent)|^token limit$|resource has been"
     r" exhausted|quota exceeded, please increase|请求过于频繁|并发|超过配额|限流"),
    ("material_unreachable",
     r"(download|fetch|retriev|load)\w*\b.{0,50}\b(image|video|audio|file|media|content|url|input|document|resource)"
     r"|(image|video|audio|file|media|url|input|material)\w* (could not be )?(download|load|fetch|decode|parse)\w*"
     r"( (failed|failure|error|timeout))?|(could not|cannot|unable to|failed to) (process|identify|decode|read|open|parse)"
     r" (the |input )*(image|video|audio|file|document)|(media|file|image|video) (url )?(is )?(inaccessible|unreachable"
     r"|corrupt)|url (download|format)|invalid (image|video|audio|media|file|archive|asset)|asset invalid|unsupported"
     r" (image|video|audio|media)|(image|video|audio|file|media) (type|format|size)|format (is )?not supported|oversized"
     r" image|document (content|has no|parser)|image type|check face|face detection|(图片|音频|视频)解码失败|下载失败"),
    ("invalid_request",
     r"context[ _]length|(prompt|text|input|request|payload|body|entity|sequence|array|image)\w*\b.{0,24}\btoo (long|large"
     r"|big|small|short)|too large|payload too|token count|max(imum)?[ _](context )?length|text length exceed|exceeds? max"
     r"|above max|unsupported (parameter|value|content type|language)|unrecognized request argument|field (is )?required"
     r"|missing required|required (parameter|property|field)|field (lacking|unwanted)|feature not supported|out of range"
     r"|invisible char|json payload|is mandatory|too many (images|videos|audios|items|inputs)|文本过长|请求体太大"),
)

WEAK = _words(
    ("task_lost", r"^(task )?unknown$"),
    ("account_forbidden", r"permission|forbidden|access denied|not authorized|unauthorized (operation|access)|not allowed"),
    ("model_unavailable", r"model.{0,20}(unavailable|not)|unsupported operation"),
    ("provider_error",
     r"internal|server error|system error|unexpected (error|response)|\bapi error|service (is )?(temporarily )?unavailable"
     r"|unavailable|backend|algo\b|rpc|upload|inner error|third party|bad output|unknown error|disconnected|connection"
     r" error|no healthy upstream|generation failed|(video|image|task) (generation )?failed|server_error|platform"),
    ("rate_limited", r"quota|exhausted|limit exceeded|limitexceeded|try again later|capacity"),
    ("invalid_request",
     r"invalid|validation|missing|bad ?request|parameter|unprocessable|malformed|must be|should be|not valid|is required"
     r"|not match|not support|unsupported|illegal|参数"),
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


def _first(words: tuple[Word, ...], text: str) -> str:
    return next((word.ours for word in words if word.pattern.search(text)), "")
