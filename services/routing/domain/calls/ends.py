"""In which words a call ends that nobody served (SYN-2, SYN-4, SYN-6). Pure.

| what is left at the end | code |
|---|---|
| the request itself, or what it asks for and no Supply has | the caller's own fault |
| the configuration names what is not there | `source_not_configured` (an assembly fault) |
| a real try has failed, and there is no attempt, time, money or hope for another | `retry_exhausted` |
| it has waited for its stall window while nothing succeeded | `stalled` |
| somebody is merely full, or has answered 429 | `quota_full` |
| nobody is full, and circuits are open | `circuit_open_all` |
| nobody is in use, or nothing fits | `no_sources` |

Each of the *unavailable* family names every source with its reason, and the shortest time after which another look is
worth while; where nobody knows when a key works again or an account has money, none.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from libs.faults.fault import Fault, FieldError
from services.routing.domain.calls.sizing import DEFAULT_OUTPUT_TOKENS, as_digest, input_tokens
from services.routing.domain.candidates import WINDOW, Shape, as_asked
from services.routing.domain.capability import misfits
from services.routing.domain.catalog import Kind, Supply
from services.routing.domain.decision import Decision, Fate, Inputs
from services.routing.domain.task import Failure

PASSED_ON = frozenset({"forbidden", "model_not_published", "validation_failed", "source_not_configured",
                       "cost_limit_exceeded", "real_person_rejected"})  # fmt: skip
"""Failures of a decision that the caller is told as they are."""
USUAL_PAUSE_MS = 1000
"""Where nobody says when room will come: something is released sooner or later."""
UNFIT = "SEL-5"
OFFERED_AT = {"capability": "/input", "billing_mode": "/options/billing_mode", WINDOW: "/input"}
"""What is not on offer, by the reason of the drop: where a request asks for it, if nothing says it more closely."""
HEALTH = "SEL-8"
RELEASED = frozenset({"concurrency", "recovering", "adaptive"})
"""Gates that open when somebody's work ends, which nobody knows beforehand."""
PASSING = frozenset({HEALTH, "SEL-9", "ATT-3a"})
"""Steps whose drops time alone may cure."""


def governance(fault: Fault) -> Fault:
    """CAP-12: whoever would be asked does not answer, and so nobody is admitted."""
    if fault.code in ("peer_unavailable", "deadline_exceeded", "cancelled", "internal"):
        return Fault.of("governance_backend_down", f"nobody could be admitted: {fault.message}")
    return fault


@dataclass(frozen=True, slots=True)
class Hold:
    """Why a Supply is not asked again before a time, in this call. `retry_after_ms` is what the caller is told."""

    until: datetime
    reason: str
    retry_after_ms: int | None = None
    failed: bool = False
    """A real try has failed there; else it had no room."""
    lasting: bool = False
    """What failed lasts until an operator or the provider mends it: longer than any call waits."""


Holds = Mapping[str, Hold]


def curable(fates: Sequence[Fate], holds: Holds) -> bool:
    """Whether anybody may serve later in this call: not whom a lasting failure holds, nor whom time does not cure."""
    open_to = (fate for fate in fates if fate.supply not in holds or not holds[fate.supply].lasting)
    return any(fate.fate != "dropped" or (fate.step in PASSING and fate.reason != "disabled") for fate in open_to)


def refused(decision: Decision, inputs: Inputs) -> Fault:
    """The end of a decision over these inputs that can never be otherwise."""
    fates, model = decision.fates, inputs.model.id
    if decision.failure_code in PASSED_ON:
        return Fault.of(decision.failure_code, decision.failure_message)
    if fates and all(fate.step == UNFIT and fate.reason in OFFERED_AT for fate in fates):
        # Nothing that time or an operator's hand at a breaker could cure: what is asked for is not on offer (SYN-12).
        return Fault.invalid(*_wants(fates, inputs))
    steps = sorted({fate.step for fate in fates if fate.step})
    counts = ", ".join(f"{sum(fate.step == step for fate in fates)} at {step}" for step in steps)
    words = f"{len(fates)} supplies dropped: {counts}" if fates else f"no supply is bound to model {model!r}"
    return _unavailable("no_sources", words, fates, {}, None)


def _wants(fates: Sequence[Fate], inputs: Inputs) -> Iterator[tuple[str, str]]:
    """(pointer, words) of each want that no Supply meets, with what each admits, said once."""
    wants: dict[tuple[str, str], dict[str, list[str]]] = {}
    asked = as_asked(inputs.model, inputs.request.input)
    for fate in fates:
        for pointer, needs, admits in _unmet(fate, asked, inputs.supplies.get(fate.supply)):
            wants.setdefault((pointer, needs), {}).setdefault(admits, []).append(fate.supply)
    for (pointer, needs), admitted in wants.items():
        offers = "; ".join(f"{admits} at {', '.join(names)}" for admits, names in admitted.items())
        yield pointer, f"asks for what model {inputs.model.id!r} has not got: needs {needs}, {offers}"


def _unmet(fate: Fate, asked: Shape, supply: Supply | None) -> list[tuple[str, str, str]]:
    """(pointer, what is needed, what the Supply does instead), in the words of the fate."""
    found = misfits(supply.capabilities, asked.facts) if supply and fate.reason == "capability" else []
    if found:
        return [(f"/input/{item.field}", item.needs, f"admits {item.admits}") for item in found]
    needs, _, admits = fate.figures.removeprefix("needs ").partition(", ")
    return [(_asked_at(asked) if fate.reason == WINDOW else OFFERED_AT[fate.reason], needs, admits)]


def _asked_at(asked: Shape) -> str:
    """The field that asks for most of the tokens that a request takes at once."""
    if asked.facts.kind is Kind.EMBEDDING:
        return "/input/input"
    output = asked.facts.amounts.get("output_tokens", DEFAULT_OUTPUT_TOKENS)
    read = input_tokens(asked.facts.kind, as_digest(asked.facts.kind, asked.input))
    return f"/input/{asked.facts.output_field}" if output > read else "/input/messages"


def waiting(decision: Decision, holds: Holds, now: datetime) -> Fault:
    """The end of a call that may not wait, or not longer: nobody has room, or nobody is well."""
    fates = decision.fates
    ill = [fate for fate in fates if fate.step == HEALTH and fate.supply not in holds]
    full = [fate for fate in fates if fate.supply in holds or fate.step in ("SEL-9", "ATT-3a")]
    if ill and not full:
        words = f"the circuit of {'every supply' if len(ill) > 1 else ill[0].supply} is open: {_words(ill, holds)}"
        words += _passed_over(fates, ill, holds)
        return _unavailable("circuit_open_all", words, fates, holds, _later_ms(decision.retry_at, now))
    words = f"{len(full)} {'supplies are' if len(full) != 1 else 'supply is'} full: {_words(full, holds)}"
    words += _passed_over(fates, full, holds)
    later_ms = _later_ms(decision.retry_at, now)
    if later_ms is not None and any(fate.reason in RELEASED and fate.supply not in holds for fate in full):
        later_ms = min(later_ms, USUAL_PAUSE_MS)
    return _unavailable("quota_full", words, fates, holds, later_ms)


def exhausted(
    tries: int,
    most: int,
    fates: Sequence[Fate],
    holds: Holds,
    out_of_time_s: float | None,
    doubted: bool = False,
    no_more: str = "",
) -> Fault:
    """Every permitted try has failed, or there is no time for another. A repetition is of no use where waiting mends
    nothing, and nobody's but the caller's choice where a try is `doubted`: it may have been made and charged.
    `no_more` is why no other try is permitted, where the number of them does not say it."""
    words, vain = f"{tries} of {most} tries failed", not curable(fates, holds)
    if out_of_time_s is not None:
        words += f" and the {out_of_time_s:g} s of the call are over"
    elif no_more:
        words += f" and another is not permitted ({no_more})"
    elif tries < most and vain:
        words += " and waiting mends nothing"
    failed = "; ".join(f"{name}: {hold.reason}" for name, hold in sorted(holds.items()) if hold.failed)
    fault = _unavailable("retry_exhausted", f"{words}: {failed}", fates, holds, None)
    return fault.replaced(retryable=False, retry_after_ms=None) if doubted or vain else fault


def stalled(stall_s: float, window_s: float, last: datetime | None, fates: Sequence[Fate], holds: Holds) -> Fault:
    """It has only waited, and nothing in its scope goes on."""
    since = f"no success in the model's scope since {last:%H:%M:%S}" if last else "no success in the model's scope yet"
    words = f"stalled for {stall_s:.3g} s of {window_s:g} s, {since}"
    return _unavailable("stalled", words, fates, holds, None)


def failure_of_call(fault: Fault) -> Failure:
    """The end as it is kept with the call: the sources in the message, since a Failure has no fields of its own."""
    unsaid = [error for error in fault.errors if error.reason not in fault.message]
    reasons = "; ".join(f"{error.pointer} {error.reason}" for error in unsaid)
    text = f"{fault.message} ({reasons})" if reasons else fault.message
    return Failure(
        category=fault.category.value,
        scope=fault.scope.value,
        retryable=fault.retryable,
        code=fault.code,
        message=text,
        retry_after_ms=fault.retry_after_ms,
        provider=fault.provider,
        provider_code=fault.provider_code,
        provider_message=fault.provider_message,
    )


def _unavailable(code: str, words: str, fates: Sequence[Fate], holds: Holds, later_ms: int | None) -> Fault:
    named = {fate.supply: _reason(fate) for fate in fates} | {name: hold.reason for name, hold in holds.items()}
    told = [hold.retry_after_ms for hold in holds.values() if hold.retry_after_ms is not None]
    soonest = min(told + ([later_ms] if later_ms is not None else []), default=None)
    fault = Fault.of(code, words, errors=tuple(FieldError(name, reason) for name, reason in sorted(named.items())))
    if soonest is None and fault.retry_after_ms is None and code != "no_sources" and curable(fates, holds):
        soonest = USUAL_PAUSE_MS
    return fault if soonest is None else fault.replaced(retry_after_ms=max(1, soonest))


def _words(fates: Sequence[Fate], holds: Holds) -> str:
    return "; ".join(
        f"{fate.supply}: {holds[fate.supply].reason if fate.supply in holds else _reason(fate)}" for fate in fates
    )


def _passed_over(fates: Sequence[Fate], named: Sequence[Fate], holds: Holds) -> str:
    """Who else there is, and why not: a supply that is well and too dear is what a caller can do something about."""
    rest = [fate for fate in fates if fate not in named and fate.fate == "dropped"]
    return f"; passed over: {_words(rest, holds)}" if rest else ""


def _reason(fate: Fate) -> str:
    if fate.fate != "dropped":
        return "was not asked"
    return f"{fate.step} {fate.figures or fate.reason}".strip()


def _later_ms(moment: datetime | None, now: datetime) -> int | None:
    return None if moment is None else max(1, round((moment - now).total_seconds() * 1000))
