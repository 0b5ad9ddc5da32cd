"""History decided again under an alternative, a page at a time (SEL-23). Reads only; nothing is kept of it."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from services.routing.app.desk import Desk
from services.routing.domain.alternative import Alternative, PriceList, PriceSwap, altered
from services.routing.domain.candidates import inputs_to_quote
from services.routing.domain.decision import Decision, Inputs, QuoteView, Verdict
from services.routing.domain.lengths import as_made
from services.routing.domain.request_facts import billing_mode
from services.routing.domain.rounds import RoundOutcome, RoundQuery, SelectionRound
from services.routing.domain.selection import select
from services.routing.domain.selection_record import recorded_decision, recorded_inputs
from services.routing.domain.what_if import Example, Outcome, Tally, outcome
from services.routing.ports import Priced

UNREADABLE = (KeyError, TypeError, ValueError, ArithmeticError, AttributeError)
"""What a record that this release cannot read or decide on raises."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page of an alternative history. After `last` the next one begins; None = there is none."""

    tally: Tally
    last: SelectionRound | None
    total: int | None


async def what_if(desk: Desk, alternative: Alternative, query: RoundQuery) -> Page:
    """Decide the rounds of `query` again. The whole number is counted with the first page alone.

    Faults: `validation_failed` where cost_quote knows a rule to be none; `governance_backend_down` while it is away.
    """
    rounds = await desk.store.decided(replace(query, count=query.count + 1))
    tally = Tally()
    for item in rounds[: query.count]:
        await _judge(desk, alternative, item, tally)
        await asyncio.sleep(0)  # live Tasks of this process come first
    more = len(rounds) > query.count
    total = await desk.store.count_decided(query) if query.after is None else None
    return Page(tally, rounds[query.count - 1] if more else None, total)


async def _judge(desk: Desk, alternative: Alternative, item: SelectionRound, tally: Tally) -> None:
    if item.outcome is RoundOutcome.REFUSED:
        tally.refused += 1
        return
    try:
        inputs, decision = recorded_inputs(item.record), recorded_decision(item.record)
        before = outcome(inputs, decision)
    except UNREADABLE:
        tally.unreadable += 1
        return
    after = await _decided(desk, alternative, inputs)
    if after is None:
        tally.untouched += 1
    else:
        tally.add(Example(item.task_id, item.round, inputs.request.model, before, after))


async def _decided(desk: Desk, alternative: Alternative, inputs: Inputs) -> Outcome | None:
    """What the decision would have been; None where the alternative has no word on it."""
    rates = await _rates(desk, inputs) if isinstance(alternative, PriceSwap) else {}
    found = altered(alternative, inputs, rates)
    if found is None:
        return None
    if found.inputs is None:
        return outcome(None, Decision(Verdict.WAIT, (), waiting_reason=found.missing))
    changed = found.inputs
    if found.prices is not None:
        changed = replace(changed, quotes=await _quoted(desk, changed, found.prices))
    return outcome(changed, select(changed))


async def _rates(desk: Desk, inputs: Inputs) -> Mapping[str, Decimal]:
    """The exchange rates of the catalogue that the decision was made under; revisions are kept for ever (CAT-2)."""
    return (await desk.catalog.at(inputs.catalog_revision)).fx


async def _quoted(desk: Desk, inputs: Inputs, prices: PriceList) -> Mapping[str, QuoteView]:
    """What every bound Supply would cost, by cost_quote's word."""
    model, request = inputs.model, inputs.request
    sent = inputs_to_quote(model, inputs.rules, request.input)
    known = ((inputs.supplies[key], given) for key, given in sent.items() if key in inputs.supplies)
    priced = [Priced(supply, as_made(supply, given)) for supply, given in known]
    mode = billing_mode(model.kind, request.billing_mode)
    return await desk.quotes.quote_under(str(model.kind), mode, priced, prices, inputs.now)
