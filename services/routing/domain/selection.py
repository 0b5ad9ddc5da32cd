"""Selection: frozen inputs in, one decision out (SEL-1 to SEL-12, TIER, COST-4 to COST-7). Pure.

Laws of this file:
- the order of the steps is fixed and there are no weights; what one step dropped no later step brings back;
- candidates are looked at tier by tier, and inside a tier layer by layer (SEL-7); the first layer that has a
  survivor serves, and nothing is ever ranked across tiers or layers (SEL-21);
- full is not unavailable: a layer without survivor in which somebody is merely full makes the Task wait, or under
  `spill` lets the next layer or the fallback tier serve, but never the degraded one (TIER-1a);
- passes, first that serves wins: untried Supplies; all Supplies (ATT-3a); then, where the policy has
  `emergency_availability`, both again under the emergency limit (COST-7). A pass that ends merely full ends the search;
- every bound Supply leaves with exactly one fate (SEL-16), and nothing depends on the order of the bindings (SEL-19).
"""

from collections.abc import Sequence
from enum import StrEnum
from operator import attrgetter

from msgspec import Struct

from libs.kernel.money import Money
from services.routing.domain.availability import FULL, HEAL, LATER
from services.routing.domain.candidates import Assessor, Candidate, as_asked, key_of
from services.routing.domain.capability import misfits
from services.routing.domain.catalog import Kind, Tier
from services.routing.domain.decision import Decision, Inputs, Verdict
from services.routing.domain.guardrails import Guard, baseline_of
from services.routing.domain.market import market_of
from services.routing.domain.request_facts import Facts
from services.routing.domain.verdicts import Round, refused, served, unserved

TIERS = (Tier.EXACT, Tier.FALLBACK, Tier.DEGRADED)
SYNCHRONOUS = frozenset({Kind.IMAGE, Kind.CHAT, Kind.EMBEDDING, Kind.OCR, Kind.SPEECH})

_KEY = attrgetter("key")


class _Ending(StrEnum):
    """How a pass ended."""

    SERVES = "serves"
    FULL = "full"
    HEALS = "heals"
    NEVER = "never"


class _Pass(Struct, frozen=True):
    """One walk over tiers and layers. `reached` are the tiers looked at, `field` the survivors, by tier and id."""

    ending: _Ending
    reached: tuple[Tier, ...]
    excluded: frozenset[str]
    emergency: bool
    tier: Tier = Tier.EXACT
    field: Sequence[Candidate] = ()


SERVES, FULLY_BOOKED, DEGRADED = _Ending.SERVES, _Ending.FULL, Tier.DEGRADED
"""Looked up once: the member of an enumeration is found by a call."""


def select(inputs: Inputs) -> Decision:
    """Decide what is to be done with one Task now. Raises nothing: what is wrong is a fate or a failure code."""
    market = market_of(inputs)
    asked = as_asked(inputs.model, inputs.request.input)
    problem = _inadmissible(inputs, asked.facts)
    if problem is not None:
        return refused(inputs, market.bounds, *problem)
    assessor = Assessor(inputs, market, asked)
    baseline = baseline_of(assessor.baseline_quotes())
    guard = Guard(inputs.policy, inputs.currency, baseline, inputs.spent.amount)
    candidates = {tier: assessor.assess(tier, guard) for tier in TIERS}
    strict = is_strict(inputs)
    final = _search(inputs, candidates, strict)
    round_ = Round(
        inputs=inputs,
        candidates=candidates,
        baseline=None if baseline is None else Money.unchecked(inputs.currency, baseline),
        reached=final.reached,
        excluded=final.excluded,
        emergency=final.emergency,
        strict=strict,
        asked=asked,
    )
    if final.ending is SERVES:
        order = (lambda candidate: key_of(inputs, candidate)) if final.emergency else _KEY
        field = sorted(final.field, key=order)
        if ranks := inputs.ranks:
            field.sort(key=lambda candidate: ranks.get(candidate.bound.id, 0))  # stable: the policy decides inside
        return served(round_, final.tier, field)
    return unserved(round_, Verdict.FAIL if final.ending is _Ending.NEVER else Verdict.WAIT)


def is_strict(inputs: Inputs) -> bool:
    """TIER-2: whether this request may not degrade; the policy speaks where the caller did not."""
    return (inputs.request.degradation or inputs.policy.degradation) == "strict"


def spills(inputs: Inputs) -> bool:
    """TIER-1a: whether the next full-capability tier may serve while exact Supplies are merely full."""
    default = "spill" if inputs.model.kind in SYNCHRONOUS else "wait"
    return (inputs.policy.when_full or default) == "spill"


def _inadmissible(inputs: Inputs, facts: Facts) -> tuple[str, str, str, str] | None:
    """SEL-1, SEL-2 as (step, reason, failure code, message). Asked at the door too; a change may follow."""
    model = inputs.model
    if not inputs.permitted:
        message = f"tenant {inputs.request.tenant!r} may not use model {model.id!r}"
        return "SEL-1", "forbidden", "forbidden", message
    if not model.published:
        return "SEL-1", "not_published", "model_not_published", f"model {model.id!r} is not published"
    found = misfits(model.limits, facts)
    if found:
        message = "; ".join(f"/input/{misfit.field} {misfit.figures}" for misfit in found)
        return "SEL-2", "model_limits", "validation_failed", message
    return None


def _search(inputs: Inputs, candidates: dict[Tier, list[Candidate]], strict: bool) -> _Pass:
    """The passes in their order; the last one that looked at every Supply speaks when none serves."""
    spill = spills(inputs)
    tried = frozenset(inputs.tried)
    last = _walk(candidates, tried, False, strict, spill)
    if last.ending in (SERVES, FULLY_BOOKED):
        return last
    if tried:
        last = _walk(candidates, frozenset(), False, strict, spill)
        if last.ending in (SERVES, FULLY_BOOKED):
            return last
    if inputs.policy.emergency_availability:
        for excluded in dict.fromkeys((tried, frozenset())):
            found = _walk(candidates, excluded, True, strict, spill)
            if found.ending in (SERVES, FULLY_BOOKED):
                return found
            last = found
    return last


def _walk(
    candidates: dict[Tier, list[Candidate]], excluded: frozenset[str], emergency: bool, strict: bool, spill: bool
) -> _Pass:
    reached: list[Tier] = []
    waits: set[str] = set()
    for tier in TIERS:
        if tier is DEGRADED and (strict or FULL in waits):
            break
        reached.append(tier)
        pool = candidates[tier]
        if excluded:
            pool = [candidate for candidate in pool if candidate.bound.id not in excluded]
        for layer in _layers(pool):
            field = [c for c in layer if c.drop is None and (c.over is None or c.affordable(emergency))]
            if field:
                return _Pass(SERVES, tuple(reached), excluded, emergency, tier, field)
            waits.update(candidate.waits_for(emergency) for candidate in layer)
            if FULL in waits and not spill:
                return _Pass(FULLY_BOOKED, tuple(reached), excluded, emergency)
    ending = FULLY_BOOKED if FULL in waits else _Ending.HEALS if waits & {HEAL, LATER} else _Ending.NEVER
    return _Pass(ending, tuple(reached), excluded, emergency)


def _layers(pool: Sequence[Candidate]) -> tuple[Sequence[Candidate], ...]:
    """SEL-7: Supplies that admit real people first, restricted ones after; one layer when nobody real is shown."""
    second = [candidate for candidate in pool if candidate.restricted]
    return ([candidate for candidate in pool if not candidate.restricted], second) if second else (pool,)
