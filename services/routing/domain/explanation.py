"""The four-step explanation of a selection, for operators (SEL-24).

1 hard capability match (video: with the real-person step) · 2 health and capacity · 3 stability or cost policy ·
4 at most one switch of Supply. Built from the fates alone, so that it cannot tell another story than they do.
"""

from collections.abc import Collection, Mapping, Sequence

from libs.kernel.money import Money
from services.routing.domain.catalog import Kind
from services.routing.domain.decision import Fate, Inputs
from services.routing.domain.guardrails import amount

Steps = tuple[str, str, str, str]
Reasons = Mapping[tuple[str, str], int]
"""How many fates have this step and this reason."""
VIDEO = Kind.VIDEO
FIRST_PART = frozenset({"SEL-4", "SEL-5", "SEL-6", "CAT-6", "TIER-3"})
SECOND_PART = frozenset({"SEL-8", "SEL-9", "ATT-3a"})
THIRD_PART = frozenset({"SEL-10", "SEL-11"})
NOT_LOOKED_AT = frozenset({"TIER-1", "TIER-2", "ATT-1"})
NOT_REACHED = FIRST_PART | NOT_LOOKED_AT


def refused_steps(message: str) -> Steps:
    """The request was refused before any Supply was looked at."""
    return (f"Refused before any supply was looked at: {message}.", "Not reached.", "Not reached.", "Not reached.")


def steps(inputs: Inputs, fates: Sequence[Fate], baseline: Money | None, ending: str) -> Steps:
    """Four sentences; `ending` says why nothing was chosen, empty when something was. Fates ranked second and
    after come last."""
    reasons: dict[tuple[str, str], int] = {}
    for fate in fates:
        if fate.step:
            key = fate.step, fate.reason
            reasons[key] = reasons.get(key, 0) + 1
    return (
        _match(inputs, reasons, len(fates)),
        _standing(reasons, len(fates)),
        _policy(inputs, fates, reasons, baseline, ending),
        _switch(inputs),
    )


def _match(inputs: Inputs, reasons: Reasons, bound: int) -> str:
    looked = bound - _count(reasons, NOT_LOOKED_AT)
    fit = looked - _count(reasons, FIRST_PART)
    words = f"Hard capability match: {fit} of {bound} supplies fit{_because(reasons, FIRST_PART)}"
    skipped = _because(reasons, NOT_LOOKED_AT)
    words += f"; not looked at{skipped}" if skipped else ""
    if inputs.model.kind is VIDEO:
        words += f". {_real_person(inputs, reasons)}"
    return words + "."


def _real_person(inputs: Inputs, reasons: Reasons) -> str:
    if inputs.request.input.get("real_person") is not True:
        return "Real person: not shown, nothing to check"
    refused, held_back = _count(reasons, {"SEL-6"}), _count(reasons, {"SEL-7"})
    return f"Real person: {refused} refuse it, {held_back} restricted held back while an allowing supply exists"


def _standing(reasons: Reasons, bound: int) -> str:
    reached = bound - _count(reasons, NOT_REACHED)
    free = reached - _count(reasons, SECOND_PART)
    return f"Health and capacity: {free} of {reached} are free{_because(reasons, SECOND_PART)}."


def _policy(inputs: Inputs, fates: Sequence[Fate], reasons: Reasons, baseline: Money | None, ending: str) -> str:
    policy = inputs.policy
    base = f"baseline {amount(baseline.amount)} {baseline.currency}" if baseline else "no baseline"
    words = f"Policy {policy.id} ({policy.order.value}), {base}, spent {amount(inputs.spent.amount)}"
    words += f"{_because(reasons, THIRD_PART)}: "
    ranked = len(fates) - sum(reasons.values())
    if not ranked:
        return f"{words}nothing chosen, {ending}."
    first = next(fate for fate in fates if fate.rank == 1)
    words += f"{first.supply} ({first.tier}, {_figures(first)}) is first of {ranked}"
    if ranked == 1:
        return f"{words}."
    second = fates[1 - ranked]
    return f"{words}, before {second.supply} ({_figures(second)})."


def _figures(fate: Fate) -> str:
    quote = f"{amount(fate.quote.amount)} {fate.quote.currency}" if fate.quote else "no quote"
    slots = "no gate" if fate.free_slots is None else f"{fate.free_slots} free"
    return f"{quote}, {fate.health}, {slots}"


def _switch(inputs: Inputs) -> str:
    number, most = len(inputs.tried) + 1, inputs.policy.max_attempts
    switches = max(0, most - 1)
    words = f"At most {switches} switch{'es' if switches != 1 else ''} of supply: this is attempt {number} of {most}"
    return words + (f", after {', '.join(inputs.tried)}." if inputs.tried else ".")


def _count(reasons: Reasons, steps: Collection[str]) -> int:
    return sum([count for (step, _), count in reasons.items() if step in steps])


def _because(reasons: Reasons, steps: Collection[str]) -> str:
    """` (2 capability, 1 disabled)`, most frequent first; empty where no fate has one of these steps."""
    counts: dict[str, int] = {}
    for (step, reason), count in reasons.items():
        if step in steps:
            counts[reason] = counts.get(reason, 0) + count
    if not counts:
        return ""
    most_first = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    words = ", ".join([f"{count} {reason}" for reason, count in most_first])
    return f" ({words})"
