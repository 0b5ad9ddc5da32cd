"""The four-step explanation of a selection, for operators (SEL-24).

1 hard capability match (video: with the real-person step) · 2 health and capacity · 3 stability or cost policy ·
4 at most one switch of Supply, or how a call switches. Built from the fates alone, so that it cannot tell another story
than they do.
"""

from collections.abc import Sequence

from libs.kernel.money import Money
from services.routing.domain.catalog import Kind
from services.routing.domain.decision import Fate, Inputs
from services.routing.domain.guardrails import amount

Steps = tuple[str, str, str, str]
Counts = dict[str, int]
"""How many fates have this reason."""
VIDEO = Kind.VIDEO
MATCH, STANDING, POLICY, NOT_LOOKED_AT, HELD_BACK = range(5)
PARTS = {
    **dict.fromkeys(("SEL-4", "SEL-5", "SEL-6", "CAT-6", "TIER-3"), MATCH),
    **dict.fromkeys(("SEL-8", "SEL-9", "ATT-3a"), STANDING),
    **dict.fromkeys(("SEL-10", "SEL-11"), POLICY),
    **dict.fromkeys(("TIER-1", "TIER-2", "ATT-1", "HUMAN-2"), NOT_LOOKED_AT),
    "SEL-7": HELD_BACK,
}
"""In which sentence a dropped Supply is told of, by the step that dropped it."""


def refused_steps(message: str) -> Steps:
    """The request was refused before any Supply was looked at."""
    return (f"Refused before any supply was looked at: {message}.", "Not reached.", "Not reached.", "Not reached.")


def steps(inputs: Inputs, fates: Sequence[Fate], baseline: Money | None, ending: str) -> Steps:
    """Four sentences; `ending` says why nothing was chosen, empty when something was. Fates ranked second and
    after come last."""
    parts: tuple[Counts, ...] = ({}, {}, {}, {}, {})
    dropped = 0
    for fate in fates:
        if fate.step:
            dropped += 1
            counts, reason = parts[PARTS[fate.step]], fate.reason
            counts[reason] = counts.get(reason, 0) + 1
    bound = len(fates)
    looked = bound - sum(parts[NOT_LOOKED_AT].values())
    fit = looked - sum(parts[MATCH].values())
    free = fit - sum(parts[STANDING].values())
    words = f"Hard capability match: {fit} of {bound} supplies fit{_because(parts[MATCH])}"
    if looked < bound:
        words += f"; not looked at{_because(parts[NOT_LOOKED_AT])}"
    if inputs.model.kind is VIDEO:
        words += f". {_real_person(inputs, fates, parts)}"
    return (
        f"{words}.",
        f"Health and capacity: {free} of {fit} are free{_because(parts[STANDING])}.",
        _policy(inputs, fates, bound - dropped, _because(parts[POLICY]), baseline, ending),
        _switch(inputs),
    )


def _real_person(inputs: Inputs, fates: Sequence[Fate], parts: Sequence[Counts]) -> str:
    if inputs.request.input.get("real_person") is not True:
        return "Real person: not shown, nothing to check"
    refused, held_back = sum(1 for fate in fates if fate.step == "SEL-6"), sum(parts[HELD_BACK].values())
    return f"Real person: {refused} refuse it, {held_back} restricted held back while an allowing supply exists"


def _policy(
    inputs: Inputs, fates: Sequence[Fate], ranked: int, because: str, baseline: Money | None, ending: str
) -> str:
    policy = inputs.policy
    base = f"baseline {amount(baseline.amount)} {baseline.currency}" if baseline else "no baseline"
    words = f"Policy {policy.id} ({policy.order.value}), {base}, spent {amount(inputs.spent.amount)}{because}: "
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
    if inputs.call_tries:
        return _call_switch(inputs.call_tries, inputs.tried)
    number, most = len(inputs.tried) + 1, inputs.request.attempts_within(inputs.policy.max_attempts)
    switches = max(0, most - 1)
    words = f"At most {switches} switch{'es' if switches != 1 else ''} of supply: this is attempt {number} of {most}"
    return words + (f", after {', '.join(inputs.tried)}." if inputs.tried else ".")


def _call_switch(most: int, tried: Sequence[str]) -> str:
    """A call counts tries that failed, and want of room is none: more may have been sent than may fail."""
    words = f"A call may switch supply until {most} of its tries have failed, want of room not counted"
    return f"{words}: {len(tried)} missed so far, at {', '.join(tried)}." if tried else f"{words}: none has missed yet."


def _because(counts: Counts) -> str:
    """` (2 capability, 1 disabled)`, most frequent first; empty where no fate has one of these reasons."""
    if not counts:
        return ""
    most_first = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    words = ", ".join([f"{count} {reason}" for reason, count in most_first])
    return f" ({words})"
