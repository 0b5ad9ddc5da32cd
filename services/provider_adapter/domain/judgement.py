"""What a failed exchange proves. One path for live traffic and for ClassifyFailure.

Order of evidence, a later one only where the earlier ones are silent:
1. the adapter's table, asked with every code in the body (innermost first), then with codes in headers
2. strong words in those codes
3. strong words in messages (innermost first), then in names that stand in them ("RateLimitError")
4. weak words in codes, then in messages, unless the status alone says more
5. the HTTP status
6. the transport

Then the phase decides what the finding means (ERR-1, ERR-1a):
- a submission whose body was sent and whose answer proves nothing is `submission_unknown`;
- a question about a job that was not answered is `poll_failed`: it says nothing about the job.
"""

import re
from dataclasses import dataclass
from datetime import datetime

from libs.faults.fault import Fault
from libs.faults.registry import CODES, Category, Scope
from services.provider_adapter.domain import wording
from services.provider_adapter.domain.exchange import BEFORE_SENDING, Phase, Reply, broken_of
from services.provider_adapter.domain.reading import Clue, Reading, Shape, of_document, read
from services.provider_adapter.domain.table import FaultTable
from services.provider_adapter.domain.waits import retry_after_ms

MESSAGE_LIMIT = 300

SUBMISSION_UNKNOWN = "submission_unknown"
POLL_FAILED = "poll_failed"

_BY_STATUS = {
    400: "invalid_request", 401: "key_invalid", 402: "balance_exhausted", 403: "account_forbidden",
    404: "model_unavailable", 405: "provider_error", 406: "invalid_request", 407: "connect_failed",
    408: SUBMISSION_UNKNOWN, 409: SUBMISSION_UNKNOWN, 410: "model_unavailable", 411: "invalid_request",
    413: "invalid_request", 414: "invalid_request", 415: "invalid_request", 416: "invalid_request",
    421: SUBMISSION_UNKNOWN, 422: "invalid_request", 424: "provider_error", 425: "rate_limited", 429: "rate_limited",
    431: "invalid_request", 451: "content_rejected", 499: SUBMISSION_UNKNOWN, 500: "provider_error",
    501: "provider_error", 503: "provider_error", 529: "rate_limited", 530: "connect_failed", 598: SUBMISSION_UNKNOWN,
    599: SUBMISSION_UNKNOWN,
}  # fmt: skip
# Answers of somebody between us and the provider: without an application's own words they prove nothing.
_GATEWAY = frozenset({502, 504, *range(520, 530)} - {529})
# The size of this one request, whatever code stands beside it (some call it a rate limit).
_TOO_LARGE = frozenset({413, 414, 431})
_ENDED = re.compile(r"fail|err|abort|reject|succe|complet|done|finish|time")
_OF_MODEL = re.compile(r"model|deployment|endpoint|engine|version")
_NOT_ARRIVED = {"pool_timeout": "rate_limited"}


@dataclass(frozen=True, slots=True)
class Finding:
    """A code of ours and the clue that proved it. `theirs` is the provider's code, `said` its words.

    `proven` is False for what only weak words or the status suggest.
    """

    ours: str
    evidence: str
    theirs: str = ""
    said: str = ""
    proven: bool = False


def judge(reply: Reply, phase: Phase, table: FaultTable, now: datetime, *, synchronous: bool = False) -> Fault:
    """The fault that a reply which is no success proves. `now` only serves dates in Retry-After.

    `synchronous` says that the kind finishes within the submission: a readable answer of the wrong shape is then
    the supply's failure, there being no job that could exist unseen.
    """
    reading = read(reply.body, reply.headers.get("content-type", ""))
    finding = find(reply, reading, table)
    if phase is Phase.POLL or phase is Phase.CANCEL or phase is Phase.RECONCILE:
        finding, verdict = _of_question(finding, reply, reading, table)
    else:
        finding, verdict = _of_submission(finding, reply, reading, synchronous), True
    return fault_of(finding, reply, table, now, verdict=verdict, told=reading.wait, param=reading.param)


def judge_job(document: object, table: FaultTable, now: datetime) -> Fault:
    """Why a job failed, from the error that its record holds. Without a reason it is the supply's failure."""
    reply, reading = Reply(200), of_document(document, "body")
    finding = find(reply, reading, table)
    if finding.ours in ("", "task_lost", SUBMISSION_UNKNOWN):
        finding = Finding("provider_error", "the job failed without a reason", finding.theirs, finding.said)
    return fault_of(finding, reply, table, now, param=reading.param)


def find(reply: Reply, reading: Reading, table: FaultTable) -> Finding:
    """The best evidence there is; an empty code when there is none."""
    said = _said(reading)
    theirs = _theirs(reading)
    for clue in reading.codes:
        ours = table.lookup(clue.text, said, reply.status)
        if ours:
            return Finding(ours, clue.path, clue.text, said, proven=True)
    headers = [Clue(f"header.{name}", reply.headers[name]) for name in table.headers if reply.headers.get(name)]
    for clue in headers:
        ours = table.lookup(clue.text, said, reply.status)
        if ours:
            return Finding(ours, clue.path, clue.text, said, proven=True)
    if reply.status in _TOO_LARGE:
        return Finding("invalid_request", f"status {reply.status}", theirs, said, proven=True)
    billed = reply.status == 429 and any(wording.bills(clue.text) for clue in reading.messages)
    for clue in (*reading.codes, *headers):
        ours = wording.strong(wording.in_words(clue.text))
        if ours and not (billed and ours == "rate_limited"):  # such a code says no more than the status
            return Finding(ours, clue.path, clue.text, said, proven=True)
    for clue in reading.messages:
        ours = wording.strong(wording.provider_s_own(clue.text, reading.param))
        if ours:
            return Finding(ours, clue.path, theirs, clue.text, proven=True)
    for clue in reading.messages:
        ours = next(filter(None, map(wording.strong, wording.names_in(clue.text))), "")
        if ours:
            return Finding(ours, clue.path, theirs, clue.text, proven=True)
    return _weakly(reply, reading, theirs, said)


def _weakly(reply: Reply, reading: Reading, theirs: str, said: str) -> Finding:
    """What the status says, or, when it says little, what weak words say."""
    status = _status(reply, reading)
    by_status = _BY_STATUS.get(status, "")
    if status == 404 and reading.param and not _OF_MODEL.search(reading.param.lower()):
        return Finding("invalid_request", f"status {status}, param {reading.param[:40]!r}", theirs, said)
    for clue in reading.codes:
        if "!" in clue.path and wording.weak(wording.in_words(clue.text)):
            # a wrapped code outweighs the status of what wraps it
            return Finding(wording.weak(wording.in_words(clue.text)), clue.path, clue.text, said)
    if by_status and status not in (400, 422, 500, 503):
        return Finding(by_status, f"status {status}", theirs, said)
    if reading.structured or status < 400:
        for clue in reading.codes:
            ours = wording.weak(wording.in_words(clue.text))
            if ours:
                return Finding(ours, clue.path, clue.text, said)
        for clue in reading.messages:
            ours = wording.weak(wording.provider_s_own(clue.text, reading.param))
            # "please upload a valid file" under a 400 is no failure of the provider
            if ours and not (ours == "provider_error" and status in (400, 422)):
                return Finding(ours, clue.path, theirs, clue.text)
    by_status = by_status or ("invalid_request" if 400 <= status < 500 else "")
    return Finding(by_status, f"status {status}" if by_status else "", theirs, said)


def _status(reply: Reply, reading: Reading) -> int:
    """The HTTP status, or under a 200 the status that the body claims."""
    if reply.status >= 300 or reply.status == 0:
        return reply.status
    for clue in reading.codes:
        if len(clue.text) == 3 and clue.text.isdecimal() and 400 <= int(clue.text) < 600:
            return int(clue.text)
    return reply.status


def _of_submission(finding: Finding, reply: Reply, reading: Reading, synchronous: bool) -> Finding:
    """What the finding means for a job that was being sent."""
    if reply.transport_error:
        return _of_transport(reply.transport_error)
    if 300 <= reply.status < 400:
        return Finding("connect_failed", f"status {reply.status}: the base URL answers with a redirect")
    if reply.status in _GATEWAY and not (finding.proven and reading.structured):
        return Finding(SUBMISSION_UNKNOWN, f"status {reply.status} of a gateway", finding.theirs, finding.said)
    if reply.status == 404 and not reading.structured and not finding.proven:
        return Finding("connect_failed", "status 404 without a reason: the base URL leads elsewhere", said=finding.said)
    if reply.status == 500 and not reading.structured:
        return Finding(SUBMISSION_UNKNOWN, "status 500 without a reason", said=finding.said)
    if finding.ours == "task_lost":
        return Finding("invalid_request" if reply.status in (400, 404, 422) else SUBMISSION_UNKNOWN,
                       finding.evidence, finding.theirs, finding.said)  # fmt: skip
    if finding.ours:
        return finding
    if synchronous and reading.shape is Shape.JSON:
        return Finding("malformed_reply", f"status {reply.status}: the answer has not the expected shape")
    return Finding(SUBMISSION_UNKNOWN, f"status {reply.status}: the body ({reading.shape.value}) proves nothing",
                   finding.theirs, finding.said)  # fmt: skip


def _of_question(finding: Finding, reply: Reply, reading: Reading, table: FaultTable) -> tuple[Finding, bool]:
    """What the finding means for a job that was asked about; the flag tells whether it speaks about the job."""
    if reply.transport_error:
        return _of_transport(reply.transport_error), False
    if finding.ours == "task_lost" or (reply.status == 404 and finding.evidence.startswith("status")):
        return Finding("task_lost", finding.evidence, finding.theirs, finding.said), False
    if finding.ours == SUBMISSION_UNKNOWN:
        ended = reply.status < 300 and _ENDED.search(reading.state.lower()) is not None
        return Finding("provider_error", finding.evidence, finding.theirs, finding.said), ended
    if reply.status < 300 and reading.shape in (Shape.EMPTY, Shape.CUT, Shape.HTML, Shape.BINARY, Shape.TEXT):
        return Finding("malformed_reply", f"body ({reading.shape.value})", said=finding.said), True
    if reply.status < 300:
        return _of_record(finding, reading)
    if table.errors_of_polls_judge and reading.structured:
        by_status = not finding.ours or finding.evidence.startswith("status")
        about_user = not by_status and CODES[finding.ours].category in (Category.CONTENT, Category.REQUEST)
        if about_user or (reading.detail_list and finding.ours):
            return finding, True
    return finding if finding.ours else Finding("provider_error", f"status {reply.status}"), False


def _of_record(finding: Finding, reading: Reading) -> tuple[Finding, bool]:
    """What a readable record of a job proves that is no success. A state that nobody knows is no failure."""
    state = f"state {reading.state[:40]!r}"
    if finding.ours:
        # without a state it is no record of the job: a code of capacity or of the account is about the question
        of_question = CODES[finding.ours].category is Category.CAPACITY or CODES[finding.ours].scope is Scope.CHANNEL
        return finding, bool(reading.state) or not of_question
    if not reading.state:
        return Finding("malformed_reply", "the record names no state"), True
    if "cancel" in reading.state.lower():
        return Finding("cancelled", state), True
    if _ENDED.search(reading.state.lower()):
        return Finding("provider_error", state), True
    return Finding("malformed_reply", state), False


def _of_transport(error: str) -> Finding:
    """What a broken exchange proves: before the body was sent, that nothing happened; after it, nothing."""
    how = broken_of(error)
    if how is None:
        return Finding(SUBMISSION_UNKNOWN, f"transport {error[:80]}")
    if how in BEFORE_SENDING:
        return Finding(_NOT_ARRIVED.get(how.value, "connect_failed"), f"transport {how.value}")
    return Finding(SUBMISSION_UNKNOWN, f"transport {how.value}")


def fault_of(
    finding: Finding, reply: Reply, table: FaultTable, now: datetime, *,
    verdict: bool = True, told: str = "", param: str = "",
) -> Fault:  # fmt: skip
    """The finding as a Fault. Without `verdict` it becomes `poll_failed`, the finding's code being its reason."""
    metadata = {"evidence": finding.evidence}
    code = finding.ours
    if param and CODES[code].category is Category.REQUEST:
        metadata["param"] = param
    if not verdict:
        reason = {SUBMISSION_UNKNOWN: "provider_timeout"}.get(code, code)
        code, metadata["reason"] = POLL_FAILED, reason
    wait = retry_after_ms(reply.headers, now, finding.said, told)
    return Fault.of(
        code,
        _sentence(code, metadata.get("reason", "")),
        **({} if wait is None else {"retry_after_ms": wait}),
        provider=table.provider,
        provider_code=finding.theirs[:120],
        provider_message=finding.said[:MESSAGE_LIMIT],
        metadata=metadata,
    )


def _sentence(code: str, reason: str) -> str:
    title = CODES[code].title
    return f"{title}: {CODES[reason].title[0].lower()}{CODES[reason].title[1:]}" if reason in CODES else title


def _said(reading: Reading) -> str:
    return max((clue.text for clue in reading.messages), key=len, default="")


def _theirs(reading: Reading) -> str:
    return next((clue.text for clue in reading.codes if not clue.text.isdecimal()), "") or (
        reading.codes[0].text if reading.codes else ""
    )
