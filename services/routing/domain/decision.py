"""The shapes of a decision: what goes in, frozen, and what comes out. `selection.select` maps one to the other.

What there is one of for every candidate is a named tuple: a decision over a thousand makes thousands of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import NamedTuple

from libs.kernel.money import Money
from services.routing.domain.catalog import Channel, DegradationRule, Model, Policy, Price, Supply
from services.routing.domain.request import Request


class HealthView(NamedTuple):
    """A Channel's or Supply's health at the moment of the decision."""

    state: str = "healthy"
    epoch: int = 0
    revision: int = 0
    limit: int | None = None
    """Slots that health allows; None = no limit by health."""
    success_rate: float | None = None
    success_rate_low: float | None = None
    samples: int = 0
    cooldown_until: datetime | None = None


class CapacityView(NamedTuple):
    """A Channel's or Supply's capacity at the moment of the decision; configured 0 = no gate.

    `adaptive` slots are what the provider's answers led to, None = no such limit; before `frozen_until` it asked not to
    be asked. `room_at` is when the first of what fills its rate windows leaves them, None = no rate, or they are empty.
    """

    configured: int = 0
    in_use: int = 0
    in_use_current_epoch: int = 0
    rpm: int = 0
    rpm_used: int = 0
    tpm: int = 0
    tpm_used: int = 0
    adaptive: int | None = None
    frozen_until: datetime | None = None
    room_at: datetime | None = None


class QuoteView(NamedTuple):
    """A Supply's quote in the catalogue's currency, or why there is none."""

    amount: Decimal | None = None
    unpriced_reason: str = ""
    rule_id: str = ""
    rule_version: int = 0
    exchange_rate: str = "1"
    kind: str = "exact"
    explanation: str = ""
    compared: Decimal | None = None
    """What it would be at the length at which all are compared; None = the amount itself (COST-5, COST-6)."""

    @property
    def weight(self) -> Decimal | None:
        """What it is compared with others by."""
        return self.amount if self.compared is None else self.compared


@dataclass(frozen=True, slots=True)
class Inputs:
    """Everything a decision may look at. Mappings are keyed by Supply id, Channel id or rule id."""

    request: Request
    model: Model
    policy: Policy
    currency: str
    supplies: Mapping[str, Supply]
    channels: Mapping[str, Channel]
    rules: Mapping[str, DegradationRule]
    supply_health: Mapping[str, HealthView]
    channel_health: Mapping[str, HealthView]
    supply_capacity: Mapping[str, CapacityView]
    channel_capacity: Mapping[str, CapacityView]
    global_capacity: CapacityView
    quotes: Mapping[str, QuoteView]
    spent: Money
    now: datetime
    tried: tuple[str, ...] = ()
    """Supplies of earlier Attempts of this Task, oldest first."""
    catalog_revision: int = 0
    permitted: bool = True
    """Whether the tenant may use the model (SEL-1)."""
    prices: Mapping[str, Price] = field(default_factory=dict)
    """Price rules by id. Only their billing mode and version are looked at; a missing one is never free (COST-4)."""
    not_before: Mapping[str, datetime] = field(default_factory=dict)
    """By Supply id: the earliest time of another Attempt there, from a Retry-After (ATT-3a)."""
    ranks: Mapping[str, int] = field(default_factory=dict)
    """By Supply id: what a selector prefers, smaller first, before the policy's order (SYN-9). Empty = the policy's."""
    call_tries: int = 0
    """Of a synchronous call: how many of its tries may fail (SYN-3). 0 = a Task, or a record from before this field."""


class Verdict(StrEnum):
    """What a decision says is to be done next."""

    CHOSEN = "chosen"
    """Reserve the chosen Supply and submit."""
    WAIT = "wait"
    """Nothing now, but something may come free or heal (TIER-1a)."""
    FAIL = "fail"
    """No candidate can ever serve this request as things are configured."""


class Fate(NamedTuple):
    """What became of one bound Supply in one round (SEL-16)."""

    supply: str
    channel: str
    tier: str
    fate: str
    """`chosen`, `ranked` or `dropped`."""
    rank: int = 0
    step: str = ""
    reason: str = ""
    figures: str = ""
    quote: Money | None = None
    health: str = ""
    success_rate: float | None = None
    free_slots: int | None = None
    priority: int = 0


@dataclass(frozen=True, slots=True)
class AlertDraft:
    """An alert that a decision asks for (TIER-7, COST-7); its dedupe key is kind and subject."""

    kind: str
    severity: str
    subject: str
    message: str
    cause: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """One frozen decision."""

    verdict: Verdict
    fates: tuple[Fate, ...]
    chosen: str = ""
    tier: str = ""
    """Tier of the choice, or the last tier that was reached."""
    baseline: Money | None = None
    input: Mapping[str, object] = field(default_factory=dict)
    """The input to be sent: transformed when the choice is degraded."""
    rule: str = ""
    """The degradation rule that was applied."""
    dropped_inputs: tuple[str, ...] = ()
    requested_profile: str = ""
    actual_profile: str = ""
    waiting_reason: str = ""
    """With WAIT: the one current reason (ATT-10)."""
    retry_at: datetime | None = None
    """With WAIT: the earliest moment at which another look is useful, where known."""
    failure_code: str = ""
    """With FAIL: the registry's code, for example `supply_unavailable` or `cost_limit_exceeded`."""
    failure_message: str = ""
    steps: tuple[str, str, str, str] = ("", "", "", "")
    """The four-step explanation (SEL-24)."""
    alerts: tuple[AlertDraft, ...] = ()
