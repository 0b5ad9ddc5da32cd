"""A catalogue file as declarations (CAT-1): read whole, with every fault named by its path.

    file = read_file(text)               # raises CatalogTextError only where the text is no YAML at all
    faults = [*file.faults, *link_faults(file, kept, adapters)]

A declaration keeps its `spec` as the file has it: that is what is compared, stored and shown.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any

from services.routing.domain import catalog_objects as objects
from services.routing.domain.catalog import Channel, DegradationRule, Model, Policy, Price, Supply, Tenant
from services.routing.domain.catalog_text import load
from services.routing.domain.spec_reader import Faults, SpecReader

VERSION = 1
DEFAULT_CURRENCY = "CNY"
Value = Channel | Supply | Price | Policy | DegradationRule | Model | Tenant


class ObjectKind(StrEnum):
    """Sorts of objects in the order in which they are listed."""

    CHANNEL = "channel"
    SUPPLY = "supply"
    PRICE = "price"
    POLICY = "policy"
    DEGRADATION_RULE = "degradation_rule"
    MODEL = "model"
    TENANT = "tenant"


SECTIONS: Mapping[str, tuple[ObjectKind, Callable[[SpecReader], Value]]] = {
    "channels": (ObjectKind.CHANNEL, objects.read_channel),
    "supplies": (ObjectKind.SUPPLY, objects.read_supply),
    "prices": (ObjectKind.PRICE, objects.read_price),
    "policies": (ObjectKind.POLICY, objects.read_policy),
    "degradation_rules": (ObjectKind.DEGRADATION_RULE, objects.read_rule),
    "models": (ObjectKind.MODEL, objects.read_model),
    "tenants": (ObjectKind.TENANT, objects.read_tenant),
}
READERS = dict(SECTIONS.values())


@dataclass(frozen=True, slots=True)
class Declared:
    """One object as declared, with the path it was read at."""

    kind: ObjectKind
    id: str
    path: str
    spec: Mapping[str, Any]
    value: Value


@dataclass(frozen=True, slots=True)
class CatalogFile:
    """What a file declares; only without faults may it be used."""

    currency: str
    """Empty where the file does not say; see `currency_over`."""
    fx: Mapping[str, Decimal]
    declared: tuple[Declared, ...]
    faults: tuple[tuple[str, str], ...]

    def currency_over(self, kept: str | None) -> str:
        """The catalogue's currency: the file's, else that of what it is merged into, else CNY."""
        return self.currency or kept or DEFAULT_CURRENCY

    def of_kind(self, kind: ObjectKind) -> list[Declared]:
        """The declarations of one sort, in the order of the file."""
        return [declared for declared in self.declared if declared.kind is kind]


def read_file(text: str) -> CatalogFile:
    """Read a catalogue file. Raises CatalogTextError if it is no YAML."""
    faults: Faults = []
    reader = SpecReader(load(text), "", faults)
    version = reader.whole("version", 0)
    if version != VERSION and not any(path == "version" for path, _ in faults):
        reader.fault("version", f"must be {VERSION}" + ("" if version else "; it is required"))
    currency = objects.read_currency(reader, "currency", "")
    fx = _rates(reader, currency)
    declared: list[Declared] = []
    for section in SECTIONS:
        declared.extend(_section(reader, section, faults))
    reader.close()
    return CatalogFile(currency, fx, tuple(declared), tuple(faults))


def read_part(text: str, section: str) -> CatalogFile:
    """One section of a file, with its currency and rates; what else it holds is not looked at. CatalogTextError."""
    faults: Faults = []
    reader = SpecReader(load(text), "", faults)
    currency = objects.read_currency(reader, "currency", "")
    return CatalogFile(currency, _rates(reader, currency), tuple(_section(reader, section, faults)), tuple(faults))


def read_object(kind: ObjectKind, spec: Mapping[str, Any]) -> Value:
    """The typed value of a stored declaration, which was checked when it was applied."""
    return READERS[kind](SpecReader(spec, "", []))


def _rates(reader: SpecReader, currency: str) -> dict[str, Decimal]:
    nested = reader.nested("fx")
    rates: dict[str, Decimal] = {}
    for code in nested.value if nested else ():
        if nested is None:
            break
        if len(code) != 3 or not code.isupper():
            nested.fault(code, "must be three capital letters")
        elif code == currency:
            nested.fault(code, f"is the catalogue's own currency; give units of {currency} per 1 of another")
        rates[code] = nested.amount(code, Decimal(1), above_zero=True)
    return rates


def _section(reader: SpecReader, section: str, faults: Faults) -> list[Declared]:
    kind, read = SECTIONS[section]
    found: list[Declared] = []
    first: dict[str, str] = {}
    for item in reader.items(section):
        value = read(item)
        item.close()
        if not value.id:
            continue
        if value.id in first:
            faults.append((item.at("id"), f"{value.id!r} is declared twice, first at {first[value.id]}"))
            continue
        first[value.id] = item.path
        found.append(Declared(kind, value.id, item.path, dict(item.value), value))
    return found
