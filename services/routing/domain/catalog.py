"""The catalogue as values: what is on offer, over which account, under which policy.

A `Catalog` is one revision, frozen and whole. Every object carries its own revision too: what an Attempt used
stays readable for ever.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any

Spec = Mapping[str, Any]
"""A declaration as in the catalogue file: JSON values, money as decimal strings."""


class Kind(StrEnum):
    """Kinds of work."""

    VIDEO = "video"
    IMAGE = "image"
    CHAT = "chat"
    EMBEDDING = "embedding"
    OCR = "ocr"
    SPEECH = "speech"


class Admin(StrEnum):
    """What an operator allows a Channel or Supply (CAT-5)."""

    ENABLED = "enabled"
    DRAINING = "draining"
    DISABLED = "disabled"


class ReconcileBy(StrEnum):
    """How an unanswered submission is resolved at a server (ATT-6); the empty word leaves it to the dialect."""

    BY_ADAPTER = ""
    LIST = "list"
    LOOKUP = "lookup"
    IDEMPOTENCY_KEY = "idempotency_key"
    NONE = "none"


class Tier(StrEnum):
    """How much of the capability a binding gives (TIER-1)."""

    EXACT = "exact"
    FALLBACK = "fallback"
    DEGRADED = "degraded"


class Order(StrEnum):
    """How a policy orders candidates (SEL-18)."""

    STABLE_FIRST = "stable_first"
    COST_FIRST = "cost_first"
    MANUAL_PRIORITY = "manual_priority"


class RealPerson(StrEnum):
    """A Supply's policy on requests that show real people (SEL-6)."""

    ALLOWED = "allowed"
    RESTRICTED = "restricted"
    FORBIDDEN = "forbidden"


@dataclass(frozen=True, slots=True)
class Limits:
    """Slots and rates per minute; 0 = no gate."""

    concurrency: int = 0
    rpm: int = 0
    tpm: int = 0


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Time limits of the phases of a call, in seconds."""

    connect_s: float = 5.0
    submit_s: float = 30.0
    poll_s: float = 10.0
    ttft_s: float = 20.0
    inter_token_s: float = 15.0


@dataclass(frozen=True, slots=True)
class Channel:
    """One account at one provider."""

    id: str
    revision: int
    adapter: str
    base_url: str
    secret: str
    limits: Limits = Limits()
    timeouts: Timeouts = Timeouts()
    poll_interval_s: float = 2.0
    health: Mapping[str, float] = field(default_factory=dict)
    admin: Admin = Admin.ENABLED
    reconcile_by: ReconcileBy = ReconcileBy.BY_ADAPTER


@dataclass(frozen=True, slots=True)
class Supply:
    """One upstream model sold over one Channel."""

    id: str
    revision: int
    channel: str
    upstream_model: str
    kind: Kind
    capability_version: int = 1
    capabilities: Spec = field(default_factory=dict)
    real_person: RealPerson = RealPerson.ALLOWED
    limits: Limits = Limits()
    prices: tuple[str, ...] = ()
    charges_on_failure: bool = False
    evidence: str = ""
    evidence_reason: str = ""
    admin: Admin = Admin.ENABLED


@dataclass(frozen=True, slots=True)
class Price:
    """A price rule as declared; cost_quote understands its `spec`, routing only passes it on."""

    id: str
    revision: int
    version: int
    currency: str
    billing_mode: str
    spec: Spec = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Policy:
    """How candidates of a Public Model are ordered, guarded and retried."""

    id: str
    revision: int
    order: Order = Order.STABLE_FIRST
    min_samples: int = 20
    stable_cost_multiplier_limit: Decimal = Decimal("1.5")
    fallback_cost_multiplier_limit: Decimal = Decimal("2.0")
    absolute_cost_limit: Decimal = Decimal("50.00")
    emergency_availability: bool = False
    emergency_cost_limit: Decimal = Decimal("100.00")
    degradation: str = "best_effort"
    max_attempts: int = 2
    new_attempt_window_s: float = 1200.0
    uncertain_deadline_s: float = 1800.0
    when_full: str = ""
    """`wait` or `spill`; empty = `wait` for asynchronous kinds, `spill` for synchronous ones (TIER-1a)."""
    sync: Spec = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DegradationRule:
    """A declared, published transformation of a request into a lesser profile (TIER-3)."""

    id: str
    revision: int
    from_profile: str
    to_profile: str
    drop_inputs: tuple[str, ...] = ()
    set: Spec = field(default_factory=dict)
    clamp: Spec = field(default_factory=dict)
    verified: bool = False
    published: bool = False
    discloses: str = ""


@dataclass(frozen=True, slots=True)
class Binding:
    """Public Model -> Supply."""

    supply: str
    tier: Tier
    priority: int = 0
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Model:
    """What callers name."""

    id: str
    revision: int
    kind: Kind
    policy: str
    profile: str = ""
    limits: Spec = field(default_factory=dict)
    enabled: bool = False
    published: bool = False
    bindings: tuple[Binding, ...] = ()
    cache: Spec = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Spend:
    """A tenant's quota of money: at most `cost` in each period of the calendar, in UTC; weeks begin on Mondays."""

    cost: Decimal
    period: str
    """`day`, `week` or `month`."""
    currency: str = ""
    """Empty = the catalogue's."""


@dataclass(frozen=True, slots=True)
class Tenant:
    """Who may use which models; `*` = all published ones."""

    id: str
    revision: int
    models: tuple[str, ...] = ("*",)
    quotas: Mapping[str, int] = field(default_factory=dict)
    spend: Spend | None = None


@dataclass(frozen=True, slots=True)
class Catalog:
    """One revision of everything, by id. Retired objects are not in it."""

    revision: int
    currency: str = "CNY"
    fx: Mapping[str, Decimal] = field(default_factory=dict)
    channels: Mapping[str, Channel] = field(default_factory=dict)
    supplies: Mapping[str, Supply] = field(default_factory=dict)
    prices: Mapping[str, Price] = field(default_factory=dict)
    policies: Mapping[str, Policy] = field(default_factory=dict)
    rules: Mapping[str, DegradationRule] = field(default_factory=dict)
    models: Mapping[str, Model] = field(default_factory=dict)
    tenants: Mapping[str, Tenant] = field(default_factory=dict)
