"""The words that prove a thing wherever they stand, in codes and in messages, whoever the provider is.

Earlier lines win: the more particular meaning stands before the more general one.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Word:
    """A pattern over lower-case text, and the code of our registry that it proves."""

    pattern: re.Pattern[str]
    ours: str


def word(ours: str, *patterns: str) -> Word:
    """One line: any of the patterns proves `ours`."""
    return Word(re.compile("|".join(patterns)), ours)


# A submission that the provider has seen before, or a call that its own proxy gave up: nothing is proved.
UNPROVEN = "submission_unknown"

STRONG = (
    word("provider_error", r"moderation response error", r"content security detection error"),
    word(
        "task_lost",
        (
            r"\b(task|job|batch|prediction|request|video|generation|result|operation"
            r"|creation)s?\b[^.]{0,60}\b(not found|not founed|does not exist|no longer exists?|unknown id)"
        ),
        "job not found",
        "任务不存在",
        "^(task|job|request) (not exist|unknown)",
    ),
    word(
        UNPROVEN,
        r"disconnect/reset before headers",
        r"status( code)?:? (502|504|52[0-7])\b",
        r"error code: 52[0-7]\b",
        r"is duplicated",
        r"operation in process",
        "already have a request",
        "duplicate (request|id|task)",
        "request cancell?ed by client",
        "client closed request",
    ),
    word(
        "real_person_rejected",
        "real (person|people|human)",
        "privacy information",
        "privacyinformation",
        "another person without",
        "public figure",
        "celebrit",
        "likeness",
        "真人",
        "人脸隐私",
    ),
    word(
        "content_rejected",
        r"(?<!case[ -])sensitive",
        "moderat(ed|ion)",
        "content[ _]polic",
        "content[ _](filter|check|block|moderation|violat)",
        "safety (system|filter|polic|guideline|input|output|check|violation)",
        r"^(image |input preprocessing )?safety\b",
        "nsfw",
        "prohibited content",
        "policy violation",
        r"violat\w* (our |the |of )*(usage |content |community )?(polic|guideline|terms)",
        "usage polic",
        "risk (detection|control)",
        "inappropriate (content)?",
        "infringement",
        "copyright",
        "data inspection failed",
        "illegal detected",
        "audit submit illegal",
        "responsible ai",
        "flagged",
        "blocklist",
        "recitation",
        "^refusal$",
        "refused to (generate|answer)",
        "harmful content",
        "unsafe content",
        "违法违规",
        "违规",
        "敏感",
        "不安全",
        "审核(不通过|失败|未通过)",
        "内容安全",
    ),
    word(
        "balance_exhausted",
        r"enable billing",
        r"(plan|package|subscription)( package)? (has |is )?expired",
        r"specified api usage limits",
        "insufficient[ _](user )?(balance|credit|quota|fund)",
        "(balance|credit)s?( balance)? (is |are |was )?(too low|insufficient|exhausted|depleted|not enough)",
        "(exhausted|depleted|low|negative) (your )?(balance|credit)",
        "arrear",
        "overdue",
        "payment (is )?required",
        "paid plan required",
        "billing (error|hard limit|not active|limit|issue|information|is not active)",
        "prepayment credit",
        "spend(ing)? limit",
        r"(no|\d+|more) credits remaining",
        "requires more credits",
        "lack sufficient credits",
        "(free )?resource pack (exhausted|depleted)",
        "charge status",
        "top up your",
        "please (recharge|top up)",
        "key limit exceeded",
        "out of credits?",
        "欠费",
        "余额(不足|已用尽)",
        "剩余额度",
        "资源包余量已用尽",
        "充值",
    ),
    word(
        "account_forbidden",
        "unsupported country",
        "country, region",
        "(user )?location is not supported",
        "region (is )?not (supported|allowed)",
        "ip (address )?(is )?(not (in|on) )?(the )?white ?list",
        "account (is |has )?(currently )?(inactive|locked|suspended|disabled|abnormal|banned|irregular)",
        "irregular activit",
        "unusual activity",
        "workspace access denied",
        "user un ?auth",
        "未实名",
        "停服",
        "stop using",
        "banned",
        "attention required",
    ),
    word(
        "model_unavailable",
        r"free ?tier ?(only|of the model)",
        r"free trial quota",
        r"not purchased",
        (
            r"model\w*\b[^.]{0,60}\b(not found|not exist|does not exist|do not exist|no longer|unavailable"
            r"|is disabled|disabled|not available|access denied|has been (deprecated|retired)|decommissioned"
            r"|taken offline|not open|not activated)"
        ),
        "not activated the model",
        r"(invalid|unsupported|unknown) model\b",
        "model not supported",
        r"(deployment|endpoint|application|engine)s?\b[^.]{0,60}\b(not found|does not exist|closed endpoint)",
        "no (available )?(endpoints?|channels?) (found )?for",
        "no available channel",
        "service not open",
        r"(api|service)\b.{0,40}\b(taken offline|has been retired)",
        "version does not exist",
        "(have|has|with) (no |not |access to (the |this )?)(access to )?(the )?model",
        "verified to use the model",
        "plan (does not|lacks)",
        "(does )?not yet include access",
        "has no service",
        "unpurchased",
        "eligible for using the model",
        "is opening",
        "unauthorized access to requested resource",
        r"(api|model) \S{1,60} does not exist",
        "is not found for api",
        "不支持的模型",
        "无可用渠道",
        "无权访问模型",
        "模型不存在",
        "正在开通",
        "未开通",
    ),
    word(
        "key_invalid",
        (
            r"(api|access|secret|subscription)[ _-]?key\b.{0,24}(not valid|invalid|is invalid|expired"
            r"|revoked|reported as leaked|missing|not found|disabled|unauthorized)"
        ),
        "(invalid|incorrect|wrong|missing|expired|no) (api|access|subscription|auth)[ _-]?(key|token|credential)",
        "invalid (authentication )?(token|credential|authorization|key|signature)",
        "authentication (failed|error|failure|fails)",
        "authentication token",
        "unauthenticated",
        "no auth credentials",
        r"access token\b.{0,40}(expired|invalid|missing)",
        "token expired",
        "authorization (is|has|was) (invalid|expired|not yet valid|missing)",
        "valid authentication token",
        "needs authorization",
        "missing permissions",
        "signature (failure|expire|does not match)",
        "auth failure",
        "api[ _-]?key invalid",
        "无效的令牌",
        "令牌(已过期|无效)",
        "鉴权失败",
    ),
    word(
        "out_of_stock",
        "sold out",
        "out of stock",
        "no (machine|gpu|capacity|runner|instance)s?( is| are| was)?( could be)? (free|available|allocated)",
        "no runner",
        "runner scheduling",
        "startup timeout",
        "start in time",
        "resource (is )?insufficient",
        "资源不足",
        "no free (gpu|machine)",
        "^expired$",
    ),
    word(
        "rate_limited",
        "rate[ _-]?limit",
        "too many (requests|concurrent|tasks|connections)",
        "throttl",
        r"concurren\w*\b.{0,40}(limit|exceed|reduc|too|usage)",
        "queue (is )?(full|maxed)",
        "task queue",
        "overload",
        "slow down",
        "high (traffic|concurrency|frequency|demand)",
        "(server|system|service|model)s? (is |are )?(too )?busy",
        "capacity (exceeded|reached)",
        "tier capacity",
        "(requests?|tokens?|images?) per (min|second|day|hour)",
        r"\b(tpm|rpm|ipm|qps)\b",
        "call limit",
        "daily (task |call )?limit",
        "usage (limit|quota)",
        r"(request|job|task|parallel|active task)\w*\b.{0,40}\b(limit exceeded|num exceed|over\b.*limit)",
        "limit requests",
        "maximum number of (active|queued|running|concurrent)",
        "(per|parallel) task over",
        "burst",
        "request limit reached",
        "limit (was |is |has been )?(reached|exceeded)",
        "requests? (is )?too (fast|frequent)",
        "^token limit$",
        "resource has been exhausted",
        "quota exceeded, please increase",
        "请求过于频繁",
        "并发",
        "超过配额",
        "限流",
    ),
    word(
        "material_unreachable",
        (
            r"(image|video|audio|file|media|url|input)s?\b.{0,30}\b(cannot|can't"
            r"|could not) be (download|load|fetch|open|decod|pars|access)"
        ),
        (
            r"\b(download|fetch|retriev|load)\w*\b.{0,50}\b(image|video|audio|file|media|content|url|input"
            r"|document|resource)"
        ),
        (
            r"(image|video|audio|file|media|url|input|material)\w* (could not be )?(download|load|fetch"
            r"|decode|parse)\w*( (failed|failure|error|timeout))?"
        ),
        (
            "(could not|cannot|unable to|failed to) (process|identify|decode|read|open|parse) (the "
            "|input )*(image|video|audio|file|document)"
        ),
        "(media|file|image|video) (url )?(is )?(inaccessible|unreachable|corrupt)",
        "url (download|format)",
        "invalid (image|video|audio|media|file|archive|asset)",
        "asset invalid",
        "unsupported (image|video|audio|media)",
        "(image|video|audio|file|media) (type|format|size)",
        "format (is )?not supported",
        "oversized image",
        "document (content|has no|parser)",
        "image type",
        "check face",
        "face detection",
        "(图片|音频|视频)解码失败",
        "下载失败",
    ),
    word(
        "invalid_request",
        "context[ _]length",
        (
            r"(prompt|text|input|request|payload|body|entity|sequence|array|image)\w*\b.{0,24}\btoo (long"
            r"|large|big|small|short)"
        ),
        "too large",
        "payload too",
        "token count",
        "max(imum)?[ _](context )?length",
        "text length exceed",
        "exceeds? max",
        "above max",
        "unsupported (parameter|value|content type|language)",
        "unrecognized request argument",
        "field (is )?required",
        "missing required",
        "required (parameter|property|field)",
        "field (lacking|unwanted)",
        "feature not supported",
        "out of range",
        "invisible char",
        "json payload",
        "is mandatory",
        "too many (images|videos|audios|items|inputs)",
        "文本过长",
        "请求体太大",
    ),
)
