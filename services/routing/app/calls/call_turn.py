"""A turn of calls: those that want a place in one turn of the event loop share a snapshot of health and capacity, one
question for prices, the reservations of one statement and, at the same time, the Holds of another (SEL-4 to SEL-14).

Laws of this file: those of `app.turn`. Besides, nothing here runs under the deadline of one of the callers: the turn is
everybody's. A slot without money is given back (COST-9); what is held without a slot pays for the call's next look.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeGuard

from msgspec import Struct
from msgspec.structs import replace

from libs.faults.fault import Fault
from libs.kernel.deadlines import carry_deadline
from libs.kernel.money import Money
from libs.telemetry import names
from libs.telemetry.spans import annotate, span
from services.routing.app.calls.call_desk import CallDesk
from services.routing.app.calls.settle_call import unsent
from services.routing.app.gather import Views
from services.routing.domain.admission import may_use
from services.routing.domain.calls.selectors import ranks_of
from services.routing.domain.calls.sizing import equal_length, facts_of_each, tokens_to_reserve
from services.routing.domain.calls.sync_settings import LEASE_MARGIN_S, Selector
from services.routing.domain.candidates import inputs_to_quote
from services.routing.domain.catalog import Catalog, Model, Policy, Supply
from services.routing.domain.decision import Decision, HealthView, Inputs, QuoteView, Verdict
from services.routing.domain.offer import offer_of
from services.routing.domain.request import Request
from services.routing.domain.request_facts import billing_mode
from services.routing.domain.selection import select
from services.routing.domain.trial import model_in, policy_in
from services.routing.ports import Priced, Refused, Reserved
from services.routing.ports.prices import NOT_TOLD_YET

TOLD_WITHIN_S = 2.0
LOOK_AGAIN_S = 0.05


class Ask(Struct, frozen=True, eq=False):
    """One call that wants a place. `request.input` is a digest; `spent` counts what earlier tries may have cost."""

    desk: CallDesk
    request: Request
    selector: Selector
    spent: Money
    left_s: float
    fund: Callable[[Inputs, Decision], Awaitable[None] | None]
    """Sees to it that a choice is paid for, or raises; None: it is by now."""
    prefer: str = ""
    """A Supply that comes before all others, where it survives."""
    tried: tuple[str, ...] = ()
    not_before: Mapping[str, datetime] = {}
    call_tries: int = 0
    """How many of its tries may fail, for the explanation."""


class Seat(Struct, frozen=True):
    """A decision and what became of it; `lease` is there when it was reserved, `refused` when it was not."""

    inputs: Inputs
    decision: Decision
    try_id: str = ""
    tokens: int = 0
    lease: Reserved | None = None
    refused: Refused | None = None


async def take_seat(ask: Ask) -> Seat:
    """Snapshot, select, reserve, together with whoever else waits. Faults where somebody who is asked is away."""
    desk = ask.desk
    with span(names.SPAN_SELECT, {names.MODEL: ask.request.model}):
        asked = desk.errands.begin(desk.turn.begin(ask))  # a process that stops waits for it
        try:
            seat = await asyncio.shield(asked)
        except asyncio.CancelledError:
            asked.add_done_callback(lambda done: _nobody_came(desk, done))
            raise
        annotate({names.VERDICT: seat.decision.verdict.value})
        return seat


async def seat_all(asks: Sequence[Ask]) -> Sequence[Seat | Exception]:
    """One turn."""
    carry_deadline(None)
    desk = asks[0].desk
    views, new = await desk.looking.recent(desk.world.clock.monotonic())
    catalog, quotes = await _priced(desk, asks)
    decided = [_decided(ask, catalog, quoted, views) for ask, quoted in zip(asks, quotes, strict=True)]
    if not new and not all(map(_is_chosen, decided)):
        views = await desk.looking.anew(desk.world.clock.monotonic())
        for place, item in enumerate(decided):
            if _is_chosen(item):
                chosen = item.inputs.supplies[item.decision.chosen]
                views.occupy(chosen, item.inputs.channels[chosen.channel], item.tokens)
            else:
                decided[place] = _decided(asks[place], catalog, quotes[place], views)
    return await _reserved(desk, asks, decided)


# --- Prices -----------------------------------------------------------------------------------------------------------


async def _priced(desk: CallDesk, asks: Sequence[Ask]) -> tuple[Catalog, list[Mapping[str, QuoteView] | None]]:
    """Catalogue and quotes of one revision; None for a call whose model is not on offer in it."""
    catalog = await desk.catalog.current()
    if any(model_in(catalog, ask.request.model) is None for ask in asks):
        catalog = await desk.catalog.newest()  # it may have been admitted by a look that knew more
    until = desk.world.clock.monotonic() + TOLD_WITHIN_S
    newer = False
    while True:
        try:
            return catalog, await _quotes(desk, catalog, asks)
        except Fault as fault:
            if fault.code == "revision_conflict" and not newer:
                newer = True
            elif NOT_TOLD_YET not in fault.metadata or desk.world.clock.monotonic() >= until:
                raise
        if newer:
            catalog = await desk.catalog.newest()
        else:  # cost_quote is told of a catalogue a moment after this process
            await desk.world.clock.sleep(LOOK_AGAIN_S)


async def _quotes(desk: CallDesk, catalog: Catalog, asks: Sequence[Ask]) -> list[Mapping[str, QuoteView] | None]:
    """What nobody has asked under these rules is asked at once, a question for each kind and billing mode."""
    questions = [_question(catalog, ask) for ask in asks]
    unknown: dict[tuple[str, str], dict[object, Question]] = {}
    for question in questions:
        if question is not None and desk.memory.quoted.get(question[0]) is None:
            unknown.setdefault(question[1], {})[question[0]] = question[2]
    for (kind, mode), asked in unknown.items():
        each = [priced for question in asked.values() for priced in question]
        answers, rates = await desk.quotes.quote_each(kind, mode, each, catalog.revision)
        desk.memory.quoted.learn(catalog.revision, rates)
        told = iter(answers)
        for key, parts in asked.items():
            desk.memory.quoted.put(key, _compared(*(next(told) for _ in parts)))
    return [None if question is None else desk.memory.quoted.get(question[0]) or {} for question in questions]


Question = tuple[list[Priced], ...]
"""What each Supply would be asked for; and, where that is of unequal length, the same at an equal one."""


def _compared(quotes: Mapping[str, QuoteView], equal: Mapping[str, QuoteView] | None = None) -> Mapping[str, QuoteView]:
    if equal is None:
        return quotes
    return {name: quote._replace(compared=equal[name].amount) for name, quote in quotes.items()}


def _question(catalog: Catalog, ask: Ask) -> tuple[object, tuple[str, str], Question] | None:
    model = model_in(catalog, ask.request.model)
    if model is None or policy_in(catalog, model) is None:
        return None
    sent = inputs_to_quote(model, catalog.rules, ask.request.input)
    asked = [(given, catalog.supplies[name]) for name, given in sent.items() if name in catalog.supplies]
    told = facts_of_each(model.kind, asked)
    priced = [Priced(supply, facts) for (_, supply), facts in zip(asked, told, strict=True)]
    mode = billing_mode(model.kind, ask.request.billing_mode)
    minute = int(ask.desk.now().timestamp()) // 60  # a price may depend on the hour
    question = (priced, *_at_equal_length(model, asked))
    return (catalog.revision, minute, model.id, mode, *_spelt(told)), (str(model.kind), mode), question


def _at_equal_length(model: Model, asked: Sequence[tuple[Mapping[str, Any], Supply]]) -> Iterator[list[Priced]]:
    """COST-5, COST-6: what the multipliers compare, where the caller has named no longest answer."""
    known = {id(given): given for given, _ in asked}
    supplies = [supply for _, supply in asked]
    shorter = {name: equal_length(model.kind, given, supplies) for name, given in known.items()}
    if any(shorter.values()):
        equal = [(shorter[id(given)] or given, supply) for given, supply in asked]
        facts = facts_of_each(model.kind, equal)
        yield [Priced(supply, one) for (_, supply), one in zip(equal, facts, strict=True)]


def _spelt(told: Sequence[Mapping[str, object]]) -> tuple[str, tuple[int, ...]]:
    """Equal for equal facts in equal places; those that several Supplies share are spelt once."""
    distinct = {id(facts): facts for facts in told}
    numbers = {name: number for number, name in enumerate(distinct)}
    return repr(list(distinct.values())), tuple([numbers[id(facts)] for facts in told])


# --- Decisions --------------------------------------------------------------------------------------------------------


def _decided(ask: Ask, catalog: Catalog, quotes: Mapping[str, QuoteView] | None, views: Views) -> Seat | Exception:
    """The decision, with the slots counted that the turn has chosen by then."""
    model = model_in(catalog, ask.request.model)
    policy = policy_in(catalog, model) if model else None
    if model is None or policy is None or quotes is None:
        return Fault.of("model_not_published", f"model {ask.request.model!r} does not exist or is not published")
    try:
        inputs = _inputs(ask, catalog, (model, policy), quotes, views)
        decision = select(inputs)
    except Exception as error:
        return error  # a bug over these inputs is this call's; the others go on
    if decision.verdict is not Verdict.CHOSEN:
        return Seat(inputs, decision)
    chosen = inputs.supplies[decision.chosen]
    tokens = tokens_to_reserve(model.kind, decision.input, chosen)
    views.occupy(chosen, inputs.channels[chosen.channel], tokens)
    ask.desk.memory.rota(model.id).chosen(chosen.id)
    return Seat(inputs, decision, ask.desk.world.ids.ulid(), tokens)


def _inputs(
    ask: Ask, catalog: Catalog, under: tuple[Model, Policy], quotes: Mapping[str, QuoteView], views: Views
) -> Inputs:
    model, policy = under
    offer = offer_of(catalog, model)
    flying = {name: view.in_use for name, view in views.supplies.items() if name in offer.supplies}
    supply_capacity, channel_capacity, global_capacity = views.capacity_of(model, offer.supplies, offer.channels)
    return Inputs(
        request=ask.request,
        model=model,
        policy=policy,
        currency=catalog.currency,
        supplies=offer.supplies,
        channels=offer.channels,
        rules=offer.rules,
        supply_health={key: views.supply_health[key] for key in offer.supplies if key in views.supply_health},
        channel_health={key: views.channel_health[key] for key in offer.channels if key in views.channel_health},
        supply_capacity=supply_capacity,
        channel_capacity=channel_capacity,
        global_capacity=global_capacity,
        quotes=quotes,
        spent=ask.spent if ask.spent.currency == catalog.currency else Money.zero(catalog.currency),
        now=ask.desk.now(),
        tried=ask.tried,
        catalog_revision=catalog.revision,
        permitted=may_use(catalog, ask.request.tenant, model),
        prices=offer.prices,
        not_before=ask.not_before,
        ranks={ask.prefer: -1}
        if ask.prefer
        else ranks_of(ask.selector, offer.supplies, ask.desk.memory.rota(model.id), flying),
        call_tries=ask.call_tries,
    )


async def _reserved(desk: CallDesk, asks: Sequence[Ask], decided: list[Seat | Exception]) -> list[Seat | Exception]:
    """What is chosen is asked for at once. An answer that was lost may have been a lease: it is given back."""
    chosen = [(ask, item) for ask, item in zip(asks, decided, strict=True) if _is_chosen(item)]
    try:
        slots = asyncio.gather(*(_reserve(ask, item) for ask, item in chosen), return_exceptions=True)
        paying = [(item.try_id, owed) for ask, item in chosen if (owed := _fund(ask, item)) is not None]
        money = asyncio.gather(*(asked for _, asked in paying), return_exceptions=True)
        given = await slots
        unfunded = dict(zip((try_id for try_id, _ in paying), await money, strict=True))
        answers = iter([(slot, unfunded.get(item.try_id)) for (_, item), slot in zip(chosen, given, strict=True)])
    except BaseException:
        for _, item in chosen:
            desk.errands.begin(_give_back(desk, item.try_id))
        raise
    return [_seated(desk, item, *next(answers)) if _is_chosen(item) else item for item in decided]


def _is_chosen(item: Seat | Exception) -> TypeGuard[Seat]:
    return isinstance(item, Seat) and bool(item.try_id)


def _seated(
    desk: CallDesk, seat: Seat, answer: Reserved | Refused | BaseException, unfunded: BaseException | None
) -> Seat | Exception:
    if unfunded is not None:  # a question that was cancelled from inside has taken no Hold that we know of either
        unsent(desk, seat.try_id)
        return unfunded if isinstance(unfunded, Exception) else Fault.of("cancelled", "the Hold was given up")
    if isinstance(answer, Reserved):
        return Seat(seat.inputs, seat.decision, seat.try_id, seat.tokens, answer)
    if isinstance(answer, Refused):
        desk.looking.forget()  # whoever looks again is to see what stood in the way
        return replace(seat, refused=answer)
    desk.errands.begin(_give_back(desk, seat.try_id))
    if isinstance(answer, Exception):
        return answer  # this call's alone, a bug too: the others of the turn keep their slots
    return Fault.of("cancelled", "the reservation was given up")


def _reserve(ask: Ask, seat: Seat) -> Awaitable[Reserved | Refused]:
    """The try's id is the lease's id."""
    inputs = seat.inputs
    supply = inputs.supplies[seat.decision.chosen]
    channel_health = inputs.channel_health.get(supply.channel, HealthView())
    supply_health = inputs.supply_health.get(supply.id, HealthView())
    ttl_s = ask.left_s + LEASE_MARGIN_S
    try:
        return ask.desk.capacity.reserve(
            seat.try_id, supply, channel_health, supply_health, tokens=seat.tokens, ttl_s=ttl_s
        )
    except Exception as error:
        return _failed(error)


def _fund(ask: Ask, seat: Seat) -> Awaitable[None] | None:
    try:
        return ask.fund(seat.inputs, seat.decision)
    except Exception as error:
        return _failed(error)


async def _failed(error: Exception) -> Any:
    raise error


def _nobody_came(desk: CallDesk, done: "asyncio.Future[Seat]") -> None:
    if not done.cancelled() and done.exception() is None and (lease := done.result().lease) is not None:
        desk.errands.begin(_give_back(desk, lease.lease_id))


async def _give_back(desk: CallDesk, lease_id: str) -> None:
    carry_deadline(None)
    await desk.capacity.release(lease_id)
