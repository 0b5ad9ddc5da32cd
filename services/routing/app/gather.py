"""Everything a decision may look at, taken at one moment and frozen (SEL)."""

import asyncio
from dataclasses import dataclass

from services.routing.app.desk import Desk
from services.routing.domain.admission import may_use
from services.routing.domain.attempts import held_until, spent_in
from services.routing.domain.candidates import inputs_to_quote
from services.routing.domain.catalog import Catalog, Model
from services.routing.domain.decision import CapacityView, Inputs
from services.routing.domain.request_facts import billing_mode
from services.routing.domain.task import Task
from services.routing.ports import Priced


@dataclass(frozen=True, slots=True)
class Gathered:
    """The inputs; None, with the reason a Task waits, while the catalogue does not offer its model."""

    inputs: Inputs | None
    missing: str = ""


async def gather(desk: Desk, task: Task) -> Gathered:
    """Ask catalogue, health, capacity and prices at once. Faults of any of them pass through."""
    catalog = await desk.catalog.current()
    if not _offered(catalog, task):
        catalog = await desk.catalog.newest()  # it may have been admitted by a replica that knew more
    model = catalog.models.get(task.request.model)
    if model is None or not _offered(catalog, task):
        return Gathered(None, f"model: {task.request.model!r} is not published")
    spent = spent_in(task.spent, catalog.currency, catalog.fx)
    if spent is None:
        return Gathered(None, f"price: no rate from {task.spent.currency} to {catalog.currency}")
    supplies = {binding.supply for binding in model.bindings} & catalog.supplies.keys()
    (channel_health, supply_health), (kinds, channels, by_supply), quotes = await asyncio.gather(
        desk.health.snapshot(),
        desk.capacity.snapshot(),
        desk.quotes.quote(*_to_price(catalog, model, task), catalog.revision),
    )
    used = {catalog.supplies[supply].channel for supply in supplies} & catalog.channels.keys()
    return Gathered(
        Inputs(
            request=task.request,
            model=model,
            policy=catalog.policies[model.policy],
            currency=catalog.currency,
            supplies={key: catalog.supplies[key] for key in sorted(supplies)},
            channels={key: catalog.channels[key] for key in sorted(used)},
            rules={b.rule: catalog.rules[b.rule] for b in model.bindings if b.rule in catalog.rules},
            supply_health={key: view for key, view in supply_health.items() if key in supplies},
            channel_health={key: view for key, view in channel_health.items() if key in used},
            supply_capacity={key: view for key, view in by_supply.items() if key in supplies},
            channel_capacity={key: view for key, view in channels.items() if key in used},
            global_capacity=kinds.get(str(model.kind), CapacityView()),
            quotes=quotes,
            spent=spent,
            now=desk.now(),
            tried=tuple(attempt.supply for attempt in task.attempts if attempt.counted),
            catalog_revision=catalog.revision,
            permitted=may_use(catalog, task.request.tenant, model),
            prices={key: catalog.prices[key] for s in sorted(supplies) for key in catalog.supplies[s].prices
                    if key in catalog.prices},
            not_before={key: until for key in sorted(supplies) if (until := held_until(task, key)) is not None},
        )
    )  # fmt: skip


def _offered(catalog: Catalog, task: Task) -> bool:
    model = catalog.models.get(task.request.model)
    return model is not None and model.published and model.policy in catalog.policies


def _to_price(catalog: Catalog, model: Model, task: Task) -> tuple[str, str, list[Priced]]:
    """(kind, billing mode, candidates) as the port `Quotes` asks for them."""
    sent = inputs_to_quote(model, catalog.rules, task.request.input)
    priced = [Priced(catalog.supplies[key], given) for key, given in sent.items() if key in catalog.supplies]
    return str(model.kind), billing_mode(model.kind, task.request.billing_mode), priced
