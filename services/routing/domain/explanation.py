"""The four-step explanation of a selection, for operators (SEL-24).

1 hard capability match (video: with the real-person step) · 2 health and capacity · 3 stability or cost policy ·
4 at most one switch of Supply. Built from the fates alone, so that it cannot tell another story than they do.
"""

from collections import Counter
from collections.abc import Sequence

from libs.kernel.money import Money
from services.routing.domain.catalog import Kind
from services.routing.domain.decision import Fate, Inputs
from services.routing.domain.guardrails import amount

Steps = tuple[str, str, str, str]
FIRST_PART = frozenset({"SEL-4", "SEL-5", "SEL-6", "CAT-6", "TIER-3"})
SECOND_PART = frozenset({"SEL-8", "SEL-9", "ATT-3a"})
NOT_LOOKED_AT = frozenset({"TIER-1", "TIER-2", "ATT-1"})


def refused_steps(message: str) -> Steps:
    """The request was refused before any Supply was looked at."""
    return (f"Refused before any supply was looked at: {message}.", "Not reached.", "Not reached.", "Not reached.")


def steps(inputs: Inputs, fates: Sequence[Fate], baseline: Money | None, ending: str) -> Steps:
    """Four sentences; `ending` says why nothing was chosen, empty when something was."""
    return (
        _match(inputs, fates),
        _standing(fates),
        _policy(inputs, fates, baseline, ending),
        _switch(inputs),
    )


def _match(inputs: Inputs, fates: Sequence[Fate]) -> str:
    looked = [fate for fate in fates if fate.step not in NOT_LOOKED_AT]
    dropped = [fate for fate in looked if fate.step in FIRST_PART]
    words = f"Hard capability match: {len(looked) - len(dropped)} of {len(fates)} supplies fit{_because(dropped)}"
    skipped = _because([fate for fate in fates if fate.step in NOT_LOOKED_AT])
    words += f"; not looked at{skipped}" if skipped else ""
    if inputs.model.kind is Kind.VIDEO:
        words += f". {_real_person(inputs, fates)}"
    return words + "."


def _real_person(inputs: Inputs, fates: Sequence[Fate]) -> str:
    if inputs.request.input.get("real_person") is not True:
        return "Real person: not shown, nothing to check"
    refused = sum(fate.step == "SEL-6" for fate in fates)
    held_back = sum(fate.step == "SEL-7" for fate in fates)
    return f"Real person: {refused} refuse it, {held_back} restricted held back while an allowing supply exists"


def _standing(fates: Sequence[Fate]) -> str:
    reached = [fate for fate in fates if fate.step not in FIRST_PART | NOT_LOOKED_AT]
    dropped = [fate for fate in reached if fate.step in SECOND_PART]
    return f"Health and capacity: {len(reached) - len(dropped)} of {len(reached)} are free{_because(dropped)}."


def _policy(inputs: Inputs, fates: Sequence[Fate], baseline: Money | None, ending: str) -> str:
    policy = inputs.policy
    base = f"baseline {amount(baseline.amount)} {baseline.currency}" if baseline else "no baseline"
    words = f"Policy {policy.id} ({policy.order}), {base}, spent {amount(inputs.spent.amount)}"
    dropped = [fate for fate in fates if fate.step in ("SEL-10", "SEL-11")]
    words += f"{_because(dropped)}: " if dropped else ": "
    ranked = [fate for fate in fates if fate.rank]
    if not ranked:
        return f"{words}nothing chosen, {ending}."
    first = ranked[0]
    words += f"{first.supply} ({first.tier}, {_figures(first)}) is first of {len(ranked)}"
    return words + (f", before {ranked[1].supply} ({_figures(ranked[1])})." if len(ranked) > 1 else ".")


def _figures(fate: Fate) -> str:
    quote = f"{amount(fate.quote.amount)} {fate.quote.currency}" if fate.quote else "no quote"
    slots = "no gate" if fate.free_slots is None else f"{fate.free_slots} free"
    return f"{quote}, {fate.health}, {slots}"


def _switch(inputs: Inputs) -> str:
    number, most = len(inputs.tried) + 1, inputs.policy.max_attempts
    switches = max(0, most - 1)
    words = f"At most {switches} switch{'es' if switches != 1 else ''} of supply: this is attempt {number} of {most}"
    return words + (f", after {', '.join(inputs.tried)}." if inputs.tried else ".")


def _because(dropped: Sequence[Fate]) -> str:
    """` (2 capability, 1 disabled)`, most frequent first."""
    counts = Counter(fate.reason for fate in dropped)
    most_first = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    words = ", ".join(f"{count} {reason}" for reason, count in most_first)
    return f" ({words})" if words else ""
