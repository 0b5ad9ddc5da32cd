"""From an ended search to a Decision: the fates, the one waiting reason, the failure and the alerts.

| nothing serves, and | verdict |
|---|---|
| somebody is merely full | WAIT, `capacity: …` |
| somebody may heal, or asked to be left alone until a time | WAIT, `health: …` or `retry: …` |
| every Supply that fits refuses real people | FAIL `real_person_rejected` |
| every Supply that fits and may be used costs too much | FAIL `cost_limit_exceeded` |
| somebody that fits is disabled or draining | FAIL `supply_unavailable` |
| the catalogue names what is not there | FAIL `source_not_configured` |
| else | FAIL `no_candidates` |
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from libs.kernel.money import Money
from services.routing.domain import explanation
from services.routing.domain.availability import FULL, HEAL, LATER, Drop
from services.routing.domain.candidates import REROUTED, Candidate, Shape, key_of
from services.routing.domain.catalog import Tier
from services.routing.domain.decision import AlertDraft, Decision, Fate, Inputs, Verdict
from services.routing.domain.guardrails import amount
from services.routing.domain.market import Bound

UNAVAILABLE_STEPS = frozenset({"SEL-4", "SEL-8"})
UNFIT_STEPS = frozenset({"SEL-5", "SEL-6"})
TIERS = tuple(Tier)
_NO_DROP = Drop("", "")
money = Money.unchecked
_new = tuple.__new__
"""A Fate from its values at once: through the call of its class it takes twice as long, and every Supply has one."""


class Round(Struct, frozen=True):
    """One ended search."""

    inputs: Inputs
    candidates: Mapping[Tier, Sequence[Candidate]]
    baseline: Money | None
    reached: tuple[Tier, ...]
    excluded: frozenset[str]
    emergency: bool
    strict: bool
    asked: Shape

    @property
    def considered(self) -> list[Candidate]:
        """The candidates of the tiers reached, without those left out as tried."""
        return [
            candidate
            for tier in self.reached
            for candidate in self.candidates[tier]
            if candidate.bound.id not in self.excluded
        ]


class _Failure(NamedTuple):
    code: str
    message: str


def refused(inputs: Inputs, bounds: Sequence[Bound], step: str, reason: str, code: str, message: str) -> Decision:
    """The request itself is refused: no Supply was looked at (SEL-1, SEL-2)."""
    fates = tuple(
        Fate(
            supply=bound.id,
            channel=inputs.supplies[bound.id].channel if bound.id in inputs.supplies else "",
            tier=bound.tier.value,
            fate="dropped",
            step=step,
            reason=reason,
            figures=message if step == "SEL-2" else "",
            priority=bound.priority,
        )
        for bound in bounds
    )
    return Decision(
        verdict=Verdict.FAIL,
        fates=fates,
        failure_code=code,
        failure_message=message,
        requested_profile=inputs.model.profile,
        actual_profile=inputs.model.profile,
        steps=explanation.refused_steps(message),
    )


def served(round_: Round, tier: Tier, field: Sequence[Candidate]) -> Decision:
    """The first of the field is chosen."""
    best = field[0]
    shape = best.shape or round_.asked
    fates = _fates(round_, field)
    rule = round_.inputs.rules.get(shape.rule) if shape.rule else None
    return Decision(
        verdict=Verdict.CHOSEN,
        fates=fates,
        chosen=best.bound.id,
        tier=str(tier),
        baseline=round_.baseline,
        input=dict(shape.input),
        rule=shape.rule,
        dropped_inputs=shape.dropped,
        requested_profile=rule.from_profile if rule else round_.inputs.model.profile,
        actual_profile=rule.to_profile if rule else round_.inputs.model.profile,
        steps=explanation.steps(round_.inputs, fates, round_.baseline, ""),
        alerts=(*_alerts(round_), *_choice_alerts(round_, best, rule.to_profile if rule else "")),
    )


def unserved(round_: Round, verdict: Verdict) -> Decision:
    """Nobody serves now: wait for what may change, or fail with what will not."""
    fates = _fates(round_, ())
    waiting, failure = "", _Failure("", "")
    if verdict is Verdict.WAIT:
        waiting = _waiting_reason(round_)
    else:
        failure = _failure(round_)
    curable = [c.drop for c in round_.considered if c.drop and c.affordable(round_.emergency)]
    moments = [drop.retry_at for drop in curable if drop.retry_at]
    return Decision(
        verdict=verdict,
        fates=fates,
        tier=str(round_.reached[-1]),
        baseline=round_.baseline,
        requested_profile=round_.inputs.model.profile,
        actual_profile=round_.inputs.model.profile,
        waiting_reason=waiting,
        retry_at=min(moments, default=None) if verdict is Verdict.WAIT else None,
        failure_code=failure.code,
        failure_message=failure.message,
        steps=explanation.steps(round_.inputs, fates, round_.baseline, waiting or failure.message),
        alerts=tuple(_alerts(round_)),
    )


def _fates(round_: Round, field: Sequence[Candidate]) -> tuple[Fate, ...]:
    """The chosen and the dropped by tier and id, then the ranked from the second on. (One would tell the chosen first;
    but so stand the records of the past, and they replay byte for byte.)"""
    currency, ranked = round_.inputs.currency, {candidate.bound.place for candidate in field[1:]}
    best = field[0] if field else None
    fates = []
    for tier in TIERS:
        drop_of = _dropping(round_, tier, best is not None)
        for candidate in round_.candidates[tier]:
            if candidate is best:
                fates.append(_fate(currency, candidate, "chosen", 1, _NO_DROP))
            elif candidate.bound.place not in ranked:
                fates.append(_fate(currency, candidate, "dropped", 0, drop_of(candidate)))
    fates += [_fate(currency, candidate, "ranked", rank, _NO_DROP) for rank, candidate in enumerate(field[1:], 2)]
    return tuple(fates)


def _fate(currency: str, candidate: Candidate, word: str, rank: int, drop: Drop) -> Fate:
    bound, _, _, _, _, amount, state, rate, free, _, _ = candidate
    step, reason, figures, _, _ = drop
    quote = None if amount is None else money(currency, amount)
    name, channel, tier, priority = bound.told
    values = (name, channel, tier, word, rank, step, reason, figures, quote, state, rate, free, priority)
    return _new(Fate, values)


def _dropping(round_: Round, tier: Tier, serving: bool) -> Callable[[Candidate], Drop]:
    """Why a Supply of that tier which does not serve was dropped."""
    if tier in round_.reached:
        return lambda candidate: _drop_of(round_, candidate)
    if tier is Tier.DEGRADED and round_.strict:
        everyone = Drop("TIER-2", "strict", "the request may not degrade")
    else:
        last = round_.reached[-1]
        figures = f"{last} serves" if serving else f"{last} is full, not unavailable"
        everyone = Drop("TIER-1", "tier_not_reached", figures)
    return lambda candidate: candidate.drop if candidate.drop and candidate.drop.step == REROUTED else everyone


def _drop_of(round_: Round, candidate: Candidate) -> Drop:
    """Why a Supply of a tier that was reached was dropped."""
    if candidate.bound.id in round_.excluded:
        number = round_.inputs.tried.index(candidate.bound.id) + 1
        return Drop("ATT-1", "tried", f"attempt {number}")
    if candidate.drop is not None:
        return candidate.drop
    if not candidate.affordable(round_.emergency) and candidate.over is not None:
        over = candidate.over
        figures = f"{over.figures}; {candidate.emergency}" if round_.emergency else over.figures
        return Drop(over.step, over.reason, figures)
    # Everything let it pass and it is not in the field: a candidate of a better layer serves, or is waited for.
    return Drop("SEL-7", "restricted", "a supply that admits real people comes first")


def _waiting_reason(round_: Round) -> str:
    """ATT-10: the one current reason; of several the first in the order that would rank them."""
    words = {FULL: "capacity", HEAL: "health", LATER: "retry"}
    for kind in (FULL, LATER, HEAL):
        waiting = [c for c in round_.considered if c.waits_for(round_.emergency) == kind]
        if waiting:
            first = min(waiting, key=lambda c: (c.bound.tier != Tier.EXACT, key_of(round_.inputs, c)))
            return f"{words[kind]}: {first.drop.figures if first.drop else ''}"
    return ""


def _failure(round_: Round) -> _Failure:
    pool = [c for c in round_.considered if c.drop is None or c.drop.step != REROUTED] or round_.considered
    steps = {c.drop.step for c in pool if c.drop}
    fitting = [c for c in pool if c.drop is None or c.drop.step != "SEL-5"]
    out = UNAVAILABLE_STEPS | UNFIT_STEPS
    over = [c for c in fitting if c.over is not None and (c.drop is None or c.drop.step not in out)]
    model = round_.inputs.model.id
    if fitting and all(c.drop and c.drop.step == "SEL-6" for c in fitting):
        return _Failure("real_person_rejected", f"no supply of model {model!r} admits real people")
    if over:
        cheapest = min(over, key=lambda candidate: (candidate.quote or 0, candidate.bound.id))
        quote = amount(cheapest.quote) if cheapest.quote is not None else ""
        figures = cheapest.over.figures if cheapest.over else ""
        return _Failure(
            "cost_limit_exceeded", f"the cheapest quote is {quote} {round_.inputs.currency}, over the limit: {figures}"
        )
    if steps & UNAVAILABLE_STEPS:
        return _Failure("supply_unavailable", f"no supply of model {model!r} is in use: {_summary(pool)}")
    if "CAT-6" in steps:
        return _Failure("source_not_configured", f"model {model!r}: {_summary(pool)}")
    strict = ", and the request may not degrade" if round_.strict and round_.candidates[Tier.DEGRADED] else ""
    return _Failure("no_candidates", f"no supply of model {model!r} serves this request: {_summary(pool)}{strict}")


def _summary(pool: Sequence[Candidate]) -> str:
    words = [f"{c.bound.id} at {c.drop.step} ({c.drop.figures or c.drop.reason})" for c in pool if c.drop]
    shown = "; ".join(words[:5])
    return f"{shown}; and {len(words) - 5} more" if len(words) > 5 else shown or "none is bound"


def _alerts(round_: Round) -> list[AlertDraft]:
    """TIER-7: every exact Supply that fits this request is out of use or ill, none is merely full."""
    exact = round_.candidates[Tier.EXACT]
    if any(c.drop is None for c in exact):
        return []
    fitting = [c for c in exact if c.drop and c.drop.step not in UNFIT_STEPS]
    if not fitting or not all(c.drop and c.drop.step in UNAVAILABLE_STEPS for c in fitting):
        return []
    model = round_.inputs.model.id
    cause = "; ".join(sorted({c.drop.figures for c in fitting if c.drop}))
    message = f"All {len(fitting)} exact supplies of model {model} are unavailable."
    return [AlertDraft("exact_supply_unavailable", "high", model, message, cause)]


def _choice_alerts(round_: Round, best: Candidate, actual_profile: str) -> list[AlertDraft]:
    """TIER-7 and COST-7: what the choice itself asks to be told."""
    alerts = []
    model = round_.inputs.model
    if best.bound.tier is Tier.DEGRADED:
        message = f"Model {model.id} is served as profile {actual_profile} instead of {model.profile}."
        alerts.append(AlertDraft("degradation_in_use", "medium", model.id, message, f"supply {best.bound.id}"))
    if best.over is not None and best.quote is not None:
        message = f"Model {model.id} is served at {amount(best.quote)} {round_.inputs.currency}, over its limit."
        cause = f"{best.over.reason}: {best.over.figures}"
        alerts.append(AlertDraft("emergency_override_used", "high", model.id, message, cause))
    return alerts
