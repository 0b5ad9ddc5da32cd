"""What a delivered Attempt has cost, and whether that fits what was asked, reported and delivered."""

import logging
from decimal import Decimal
from functools import cache

from libs.faults.fault import Fault
from services.routing.app.desk import Desk
from services.routing.domain.attempts import cost_of
from services.routing.domain.drift import Delivery, Tolerance
from services.routing.domain.task import Attempt, Task
from services.routing.domain.usage import Usage, price_facts, usage_of
from services.routing.ports import Delivered
from services.routing.ports.prices import UsageItem, UsagePrice
from services.routing.settings import Settings

log = logging.getLogger(__name__)


async def delivery_of(desk: Desk, task: Task, attempt: Attempt, delivered: Delivered) -> Delivery:
    """The cost: what the provider itself says, else its usage by the rule that quoted, else the quote.

    A price that cannot be had now costs no result: the quote, which was admitted, is booked.
    """
    usage = usage_of(delivered.usage)
    priced = await _priced(desk, task, attempt, delivered, usage)
    settled = priced.cost if priced is not None else None
    if settled is not None and settled.currency != attempt.quote.currency:
        settled = None
    catalog = await desk.catalog.at(attempt.catalog_revision)
    reported = cost_of(attempt.quote, delivered.reported_cost, catalog.fx)
    cost = reported if delivered.reported_cost is not None or settled is None else settled
    return Delivery(cost, settled, usage, delivered.output, delivered.artifacts)


def tolerance_of(given: Settings) -> Tolerance:
    """What is not yet drift, by the settings."""
    return _tolerance(given.drift_cost_share, given.drift_length_s, given.drift_pixel_share)


@cache
def _tolerance(cost_share: float, length_s: float, pixel_share: float) -> Tolerance:
    return Tolerance(Decimal(str(cost_share)), length_s, pixel_share)


async def _priced(desk: Desk, task: Task, attempt: Attempt, delivered: Delivered, usage: Usage) -> UsagePrice | None:
    if not usage or not attempt.price_rule:
        return None
    item = UsageItem(
        key=attempt.id,
        kind=task.kind,
        supply=attempt.supply,
        rule_id=attempt.price_rule,
        rule_version=attempt.price_version,
        usage=usage,
        facts=price_facts(attempt.input, delivered.output),
        catalog_revision=attempt.catalog_revision,
        submitted_at=attempt.submitted_at,
    )
    try:
        return (await desk.quotes.price_usage([item])).get(attempt.id)
    except Fault as fault:
        log.warning("attempt %s is booked as quoted: its usage has no price now (%s)", attempt.id, fault.code)
        return None
