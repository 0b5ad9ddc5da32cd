"""Objects of the catalogue as they are kept: every revision for ever, none ever changed (CAT-2)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from services.routing.domain.catalog import (
    Admin,
    Catalog,
    Channel,
    DegradationRule,
    Model,
    Policy,
    Price,
    Supply,
    Tenant,
)
from services.routing.domain.catalog_file import ObjectKind, Value, read_object

Key = tuple[ObjectKind, str]


@dataclass(frozen=True, slots=True)
class ObjectRevision:
    """One object at one revision.

    `spec` is the declaration as in the file. `admin` is an operator's word that stands above the file's until the file
    changes its own; empty = none. `enabled` and `published` are granted, not asked for; only models have them. `note`
    is why this revision was made, where somebody said so.
    """

    kind: ObjectKind
    id: str
    revision: int
    spec: Mapping[str, Any]
    created_at: datetime
    catalog_revision: int
    enabled: bool = False
    published: bool = False
    retired: bool = False
    admin: str = ""
    note: str = ""

    @property
    def key(self) -> Key:
        """What it is known by."""
        return self.kind, self.id

    @property
    def effective_spec(self) -> Mapping[str, Any]:
        """The declaration with the operator's word in it."""
        return {**self.spec, "admin": self.admin} if self.admin else self.spec


@dataclass(frozen=True, slots=True)
class Holdings:
    """What is in force: the newest revision of every object, retired ones too, and the settings of the catalogue."""

    revision: int = 0
    currency: str = "CNY"
    fx: Mapping[str, Decimal] = field(default_factory=dict)
    heads: Mapping[Key, ObjectRevision] = field(default_factory=dict)

    def live(self, kind: ObjectKind) -> list[ObjectRevision]:
        """The objects of one sort that are not retired, by id."""
        return [head for key, head in sorted(self.heads.items()) if key[0] is kind and not head.retired]

    def catalog(self) -> Catalog:
        """The typed values of everything that is not retired."""
        return _assembled(self, (head for head in self.heads.values() if not head.retired))


def _assembled(holdings: Holdings, heads: Iterable[ObjectRevision]) -> Catalog:
    by_kind: dict[ObjectKind, dict[str, Value]] = {kind: {} for kind in ObjectKind}
    for head in sorted(heads, key=lambda head: head.key):
        by_kind[head.kind][head.id] = value_of(head)
    return Catalog(
        revision=holdings.revision,
        currency=holdings.currency,
        fx=dict(holdings.fx),
        channels={k: v for k, v in by_kind[ObjectKind.CHANNEL].items() if isinstance(v, Channel)},
        supplies={k: v for k, v in by_kind[ObjectKind.SUPPLY].items() if isinstance(v, Supply)},
        prices={k: v for k, v in by_kind[ObjectKind.PRICE].items() if isinstance(v, Price)},
        policies={k: v for k, v in by_kind[ObjectKind.POLICY].items() if isinstance(v, Policy)},
        rules={k: v for k, v in by_kind[ObjectKind.DEGRADATION_RULE].items() if isinstance(v, DegradationRule)},
        models={k: v for k, v in by_kind[ObjectKind.MODEL].items() if isinstance(v, Model)},
        tenants={k: v for k, v in by_kind[ObjectKind.TENANT].items() if isinstance(v, Tenant)},
    )


def value_of(head: ObjectRevision) -> Value:
    """The typed value of one revision, with what was granted to it."""
    value = replace(read_object(head.kind, head.spec), revision=head.revision)
    if isinstance(value, Model):
        return replace(value, enabled=head.enabled, published=head.published)
    if head.admin and isinstance(value, (Channel, Supply)):
        return replace(value, admin=Admin(head.admin))
    return value
