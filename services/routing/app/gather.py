"""Everything a decision may look at, taken at one moment and frozen (SEL)."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from libs.faults.fault import Fault
from services.routing.app.desk import Desk
from services.routing.domain.admission import may_use
from services.routing.domain.attempts import held_until, spent_in
from services.routing.domain.availability import occupied, unseen_capacity
from services.routing.domain.candidates import inputs_to_quote
from services.routing.domain.catalog import Catalog, Channel, Model, Supply
from services.routing.domain.decision import CapacityView, HealthView, Inputs
from services.routing.domain.lengths import as_made
from services.routing.domain.offer import offer_of
from services.routing.domain.request_facts import billing_mode
from services.routing.domain.task import Task
from services.routing.domain.trial import model_in, policy_in
from services.routing.ports import Priced


@dataclass(slots=True)
class Views:
    """Health and capacity at one moment, with what this process has chosen since then counted as in use."""

    channel_health: Mapping[str, HealthView]
    supply_health: Mapping[str, HealthView]
    kinds: dict[str, CapacityView]
    channels: dict[str, CapacityView]
    supplies: dict[str, CapacityView]

    def occupy(self, supply: Supply, channel: Channel, tokens: int = 0) -> None:
        """One more Attempt there, which may take so many tokens."""
        self.kinds[supply.kind] = occupied(self.kinds.get(supply.kind) or CapacityView(), tokens)
        for views, item in ((self.channels, channel), (self.supplies, supply)):
            views[item.id] = occupied(views.get(item.id) or unseen_capacity(item.limits), tokens)

    def seen_by(self, inputs: Inputs) -> Inputs:
        """The inputs with capacity as it stands by now."""
        supplies, channels, kind = self.capacity_of(inputs.model, inputs.supplies, inputs.channels)
        return replace(inputs, supply_capacity=supplies, channel_capacity=channels, global_capacity=kind)

    def capacity_of(
        self, model: Model, supplies: Iterable[str], channels: Iterable[str]
    ) -> tuple[dict[str, CapacityView], dict[str, CapacityView], CapacityView]:
        """As it stands by now: of those Supplies, of those Channels, of the model's kind."""
        return (
            {key: self.supplies[key] for key in supplies if key in self.supplies},
            {key: self.channels[key] for key in channels if key in self.channels},
            self.kinds.get(str(model.kind), CapacityView()),
        )


@dataclass(frozen=True, slots=True)
class Gathered:
    """The inputs; None, with the reason a Task waits, while the catalogue does not offer its model."""

    inputs: Inputs | None
    missing: str = ""


async def look(desk: Desk) -> Views:
    """Ask health and capacity at once. Faults of either pass through."""
    health, (kinds, channels, supplies) = await asyncio.gather(desk.health.snapshot(), desk.capacity.snapshot())
    return Views(*health, dict(kinds), dict(channels), dict(supplies))


async def gather(desk: Desk, task: Task, views: Views) -> Gathered:
    """Ask catalogue and prices. Faults of either pass through.

    Both are of one revision: where prices of a newer one are in force already, the newer catalogue is read.
    """
    catalog = await desk.catalog.current()
    if not _offered(catalog, task):
        catalog = await desk.catalog.newest()  # it may have been admitted by a replica that knew more
    try:
        return await _gathered(desk, task, views, catalog)
    except Fault as fault:
        if fault.code != "revision_conflict":
            raise
    return await _gathered(desk, task, views, await desk.catalog.newest())


async def _gathered(desk: Desk, task: Task, views: Views, catalog: Catalog) -> Gathered:
    model = model_in(catalog, task.request.model)
    policy = policy_in(catalog, model) if model else None
    if model is None or policy is None or not _offered(catalog, task):
        return Gathered(None, f"model: {task.request.model!r} is not published")
    spent = spent_in(task.spent, catalog.currency, catalog.fx)
    if spent is None:
        return Gathered(None, f"price: no rate from {task.spent.currency} to {catalog.currency}")
    offer = offer_of(catalog, model)
    quotes = await desk.quotes.quote(*_to_price(catalog, model, task), catalog.revision)
    return Gathered(
        Inputs(
            request=task.request,
            model=model,
            policy=policy,
            currency=catalog.currency,
            supplies=offer.supplies,
            channels=offer.channels,
            rules=offer.rules,
            supply_health={key: views.supply_health[key] for key in offer.supplies if key in views.supply_health},
            channel_health={key: views.channel_health[key] for key in offer.channels if key in views.channel_health},
            supply_capacity={},  # filled in when its turn in the turn has come: `Views.seen_by`
            channel_capacity={},
            global_capacity=CapacityView(),
            quotes=quotes,
            spent=spent,
            now=desk.now(),
            tried=tuple(attempt.supply for attempt in task.attempts if attempt.counted),
            catalog_revision=catalog.revision,
            permitted=may_use(catalog, task.request.tenant, model),
            prices=offer.prices,
            not_before=_not_before(task),
        )
    )


def _offered(catalog: Catalog, task: Task) -> bool:
    model = model_in(catalog, task.request.model)
    return model is not None and model.published and policy_in(catalog, model) is not None


def _not_before(task: Task) -> dict[str, datetime]:
    """By Supply of an earlier Attempt."""
    tried = sorted({attempt.supply for attempt in task.attempts})
    return {key: until for key in tried if (until := held_until(task, key)) is not None}


def _to_price(catalog: Catalog, model: Model, task: Task) -> tuple[str, str, list[Priced]]:
    """(kind, billing mode, candidates) as the port `Quotes` asks for them."""
    sent = inputs_to_quote(model, catalog.rules, task.request.input)
    known = ((catalog.supplies[key], given) for key, given in sent.items() if key in catalog.supplies)
    priced = [Priced(supply, as_made(supply, given)) for supply, given in known]
    return str(model.kind), billing_mode(model.kind, task.request.billing_mode), priced
