"""What a tenant may spend in a period, and the most that one piece of its work may come to. Pure."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from libs.kernel.money import Money
from services.routing.domain.catalog import Catalog
from services.routing.domain.decision import Decision, Inputs
from services.routing.domain.task import TERMINAL_TASKS, AttemptState, Task

PERIOD = "month"
"""Of a tenant that has no quota of money."""


@dataclass(frozen=True, slots=True)
class Purse:
    """The root budget of a tenant's period. Without a `limit` it counts what is spent, and refuses nothing."""

    id: str
    tenant: str
    currency: str
    limit: Money | None


def purse_of(catalog: Catalog, tenant: str, at: datetime) -> Purse:
    """The purse that pays for work of that tenant which came then."""
    known = catalog.tenants.get(tenant)
    spend = known.spend if known is not None else None
    if spend is None:
        return Purse(budget_id(tenant, PERIOD, at, catalog.currency), tenant, catalog.currency, None)
    currency = spend.currency or catalog.currency
    return Purse(budget_id(tenant, spend.period, at, currency), tenant, currency, Money(currency, spend.cost))


def period_start(period: str, at: datetime) -> date:
    """The first day of the period in which `at` lies."""
    day = at.astimezone(UTC).date()
    if period == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if period == "month" else day


def budget_id(tenant: str, period: str, at: datetime, currency: str) -> str:
    """The root budget of a tenant's period: `tenant:studio-a:month:2026-11-01:CNY`. A budget has one currency for ever,
    and the catalogue may change its own within a period."""
    return f"tenant:{tenant}:{period}:{period_start(period, at).isoformat()}:{currency}"


def worst_cost(inputs: Inputs, decision: Decision, attempts: int) -> Money:
    """The most that is permitted: so many attempts at the highest quote among those that may serve, at most the
    policy's absolute limit; and never less than the choice itself, which an emergency may have let through (COST-9)."""
    quotes = {fate.supply: fate.quote.amount for fate in decision.fates if fate.fate != "dropped" and fate.quote}
    chosen = inputs.quotes[decision.chosen].amount or Decimal(0)
    most = attempts * max(quotes.values(), default=chosen)
    return Money(inputs.currency, max(chosen, min(most, inputs.policy.absolute_cost_limit)))


def settled_cost(task: Task) -> Money | None:
    """What a Task has cost for good; None while it goes on, or while it is open whether an Attempt was charged
    (COST-12)."""
    if task.state not in TERMINAL_TASKS or any(_open(item.state, item.resolution) for item in task.attempts):
        return None
    return task.spent


def _open(state: AttemptState, resolution: str) -> bool:
    return state is AttemptState.UNRESOLVED and not resolution


def attempts_made(task: Task) -> int:
    """Attempts that count."""
    return sum(1 for item in task.attempts if item.counted)
