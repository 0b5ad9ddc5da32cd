"""The words that prove a thing wherever they stand, in codes and in messages, whoever the provider is.

Earlier lines win: the more particular meaning stands before the more general one.
"""

from services.provider_adapter.domain.languages import FOREIGN
from services.provider_adapter.domain.words import Word, word


def _in_any_language(line: Word) -> Word:
    return word(line.ours, line.pattern.pattern, *FOREIGN.get(line.ours, ()))


# A submission that the provider has seen before, or a call that its own proxy gave up: nothing is proved.
UNPROVEN = "submission_unknown"

_ENGLISH = (
    # the moderation itself failed: nothing was moderated
    word(
        "provider_error",
        r"malformed function call",
        r"moderation response error",
        r"content security detection error",
        (
            r"(moderation|(safety|content|nsfw)( safety)? (checker|filter|detector|classifier)|safety)"
            r" ?(service|system|server|model|api)?\b.{0,40}\b(unavailable|timed? ?out|error|not responding|down"
            r"|crashed|failed to (start|load|run|respond|initiali[sz]e))\b"
        ),
    ),
    word(
        "task_lost",
        (
            r"\b(task|job|batch|prediction|request|video|generation|result|operation"
            r"|creation)s?\b[^.]{0,60}\b(not found|not founed|does not exist|no longer exists?|unknown id)"
        ),
        "job not found",
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
        r"upstream (request )?time(d )?out",
        "context deadline exceeded",
        # a gateway that lost its own upstream after it had sent; "dial" is the word for one that never reached it
        r"^(?s:(?!.*\bdial\b).*)(reset by peer|connreset|socket hang ?up|unexpected eof|broken pipe)",
        "context cancell?ed",
        r"(upstream|read|operation|request) timed ?out",
        r"time(d )?out (while )?(awaiting|waiting for) (response|headers|upstream)",
        r"(upstream|server|peer) closed (the )?connection",
        "client closed request",
    ),
    word(
        "real_person_rejected",
        "real (person|people|human)",
        "privacy information",
        "privacyinformation",
        "another person without",
        r"(identifiable|recogni[sz]able) (face|person|people|individual)",
        "deep ?fake",
        r"impersonat\w* (of )?(an?|any|another|real|someone|people|public)\b",
        "public figure",
        "celebrit",
        "likeness",
    ),
    word(
        "content_rejected",
        r"(?<!case[ -])sensitive",
        "moderat(ed|ion)",
        "content[ _]polic",
        "content[ _](filter|check|block|audit|moderation|violat)",
        "safety (system|filter|classif|polic|guideline|input|output|check|violation)",
        r"^(image |input preprocessing )?safety\b",
        "nsfw",
        "prohibited content",
        "policy violation",
        (
            r"(violat|breach|contraven)\w* (our |the |of )*((acceptable )?use |usage |content |community )?"
            r"(polic|guideline|terms|rules|standards)"
        ),
        r"\b(prompt|content|input|output|image|video|text|request|response|generation)s?\b[^.]{0,20}\bblocked\b",
        r"(not|n't) (pass|meet|comply with|follow) (our |the )?[^.]{0,20}(guideline|polic|rules|moderation|review)",
        r"blocked (by|due to|for|because of) [^.]{0,20}(polic|safety|content|filter)",
        "usage polic",
        "risk (detection|control)",
        "inappropriate",
        "infring(e|es|ing|ement)",
        "intellectual property",
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
        "unsafe (content|results?|images?|output|prompt)",
        "(disallowed|explicit|adult|sexual|violent|graphic) content",
        "nudity",
        "hate(ful)? speech",
        "self[ -]harm",
        "harmful (prompt|output|request|image)",
        "(trust and |child )safety",
        "goes against (our|the) ",
        "acceptable use polic",
        r"violat\w* (our |the )?guideline",
        "risk not pass",
        r"\bunsafe$",
        "(photo|image|picture|video)s? of (children|minors|a child)",
        r"\bviolen(ce|t)\b",
        r"\b(weapons?|terroris[mt]|gore|minors)\b",
        "policy[- ]violat",
        "banned (word|term|content|phrase)",
        r"\b(content|prompt)\b[^.]{0,20}\b(not (permitted|allowed)|prohibited|forbidden|disallowed)",
        "we (do not|don't|cannot|can't) (generate|create)",
        "high risk",
    ),
    word(
        "balance_exhausted",
        r"enable billing",
        r"(plan|package|subscription)( package)? (has |is )?expired",
        r"specified api usage limits",
        "insufficient[ _](user )?(balance|credit|quota|fund)",
        "not enough (wallet|balance|credit|fund|quota|api token)",
        "credits? limit (exceeded|reached)",
        "budget (has been |is |was )?exceeded",
        "exceeded (their|your|its|the) budget",
        "payment method",
        r"n[o']t have enough (credits?|balance|funds)",
        "(outstanding|unpaid) invoice",
        r"(monthly|account|team|organi[sz]ation)\w* (budget|quota|spend\w*)\b.{0,20}(exceed|reach|exhaust)",
        "total request limit reached",
        "exceeded your current quota, please check your plan and billing(?!.*(rate-limit|for metric|retry in))",
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
    ),
    word(
        "account_forbidden",
        "unsupported country",
        r"^(?s:(?!.*\b(model|value)\b).*)\b(not|un) ?(available|supported|allowed) in (your|this) (country|region)",
        r"\b(region|country|geo) ?(is )?(blocked|restricted|forbidden)\b",
        "country, region",
        "(user )?location is not supported",
        "region (is )?not (supported|allowed)",
        "ip (address )?(is )?(not (in|on) )?(the )?white ?list",
        (
            r"\b(account|organi[sz]ation|workspace|project|tenant)\b([^.]{0,40}\b(is|has|was))?( been)?( currently)? "
            r"(inactive|locked|suspended|disabled|deactivated|blocked|abnormal|banned|irregular)"
        ),
        "irregular activit",
        "unusual activity",
        "workspace access denied",
        "user un ?auth",
        "stop using",
        "banned",
        "attention required",
        "(blocked by|triggered) (the |our |a )?(security|web application|firewall|waf)",
    ),
    word(
        "model_unavailable",
        r"free ?tier ?(only|of the model)",
        r"free trial quota",
        r"not purchased",
        (
            r"model\w*\b[^.]{0,60}\b(not found|not exist|does not exist|do not exist|no longer|unavailable"
            r"|is disabled|disabled|not available|access denied|deprecated|retired|discontinued|restricted"
            r"|decommissioned|taken offline|not open|not activated|not enabled|end[ -]of[ -]life|sunset|shut down"
            r"|has been removed)"
        ),
        "not activated the model",
        r"(invalid|unsupported|unknown|no such) model\b",
        r"\bmodel [`'\"]?[\w./:-]+[`'\"]? (is |are )?(currently )?not supported\b",
        "on-demand throughput",
        r"model identifier\b.{0,20}\binvalid",
        r"not (been )?granted access to (the |this )?model",
        r"\bendpoint\b.{0,40}\b(is|was|has been) (closed|deleted|disabled)\b",
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
    ),
    # something that the request names, and neither the model nor the job
    word(
        "invalid_request",
        (
            r"\b(file|voice|speaker|avatar|lora|style|template|preset|asset|upload|attachment|vector store|thread"
            r"|assistant|conversation|session|tool|function|dataset|character|element|reference|previous response)s?\b"
            r"[^.]{0,60}\b(not found|does not exist|do not exist|no longer exists?)"
        ),
        r"\bno such (file|voice|speaker|avatar|lora|style|template|preset|asset|upload|thread|assistant|tool|dataset)",
    ),
    # somebody answers there, but no interface of the provider: the base URL leads elsewhere
    word(
        "connect_failed", "no route matched", "cannot (post|put|get|delete) /", "route not found", "unknown request url"
    ),
    word(
        "key_invalid",
        (
            r"(api|access|secret|subscription)[ _-]?key\b.{0,24}(not valid|invalid|is invalid|expired"
            r"|revoked|reported as leaked|missing|not found|disabled|unauthorized)"
        ),
        "(invalid|incorrect|wrong|missing|expired|no) (api|access|subscription|auth)[ _-]?(key|token|credential)",
        r"invalid (authentication )?(tokens?|credentials?|authorization|keys?|signature)\b",
        r"\btoken (is |has )?(expired|invalid)\b",
        r"security token\b.{0,40}\b(invalid|expired|missing)",
        "unrecognized client",
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
    ),
    word(
        "out_of_stock",
        "sold out",
        "out of stock",
        "no (machine|gpu|capacity|runner|instance)s?( is| are| was)?( could be)? (free|available|allocated)",
        "no runner",
        r"\b(gpu|machine|runner)s?\b.{0,12}\b(unavailable|not available)",
        "runner scheduling",
        "startup timeout",
        "start in time",
        "resource (is )?insufficient",
        "insufficient (system )?resource",
        "no free (gpu|machine)",
        "^expired$",
        "(task|job) expired",
        "waited too long",
    ),
    # before the limits of rate: these are about the size of one request
    word(
        "invalid_request",
        "size limit exceeded",
        r"shorter (or fewer )?inputs?\b",
        "request too large for",
        "too large (file|image|body)",
        r"(image|video|audio|clip|file|prompt)\w*\b.{0,12}\b(too (long|short|large|small|big)|(long|short)er than)",
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
        "(server|system|service|model|worker|runner|machine|instance|gpu|node)s? (is |are )?(all |too )?busy",
        "too many (pending|queued|active|running|outstanding|inflight) ",
        r"\bmodel\b.{0,40}\b(is |being |currently )+load(ing|ed)\b",
        "(instance|at) (maxed|capacity)",
        "high load",
        r"reached (the|your|our) (\w+ ){0,3}(limit|maximum|cap)\b",
        r"can only (run|have|submit) \d+",
        r"(try again|retry) (in|after) \d+(\.\d+)? ?(ms|s|m|h)",
        "in[ -]flight (spending )?budget",
        r"\bper (minute|day)\b",
        "(hourly|daily) (limit|quota|cap)",
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
            "|user |input )*(image|video|audio|file|document|frame)"
        ),
        "(media|file|image|video) (url )?(is )?(inaccessible|unreachable|corrupt)",
        "url (download|format)",
        "invalid (image|video|audio|media|file|archive|asset)",
        "asset invalid",
        "empty (image|video|audio|file)",
        "unsupported (image|video|audio|media)",
        "(image|video|audio|file|media) (type|format|size)",
        "format (is )?not supported",
        "oversized image",
        "document (content|has no|parser)",
        "image type",
        "check face",
        "face detection",
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
        "image no text",
        "does not support synchronous calls",
        "too many (images|videos|audios|items|inputs)",
    ),
)

STRONG = tuple(map(_in_any_language, _ENGLISH))
