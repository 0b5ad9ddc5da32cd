"""Reads what history is to be decided under instead. Every reader raises Fault `catalog_invalid` with each fault by
its path; an adapter or a secret is nobody's question here."""

from collections.abc import Mapping
from typing import TypeVar

from services.routing.app.read_catalog_file import refused
from services.routing.domain.alternative import CatalogSwap, PolicySwap, PriceSwap
from services.routing.domain.catalog import (
    Catalog,
    Channel,
    DegradationRule,
    Model,
    Policy,
    Price,
    Supply,
    Tenant,
)
from services.routing.domain.catalog_file import CatalogFile, read_file, read_part
from services.routing.domain.catalog_links import link_faults
from services.routing.domain.catalog_objects import read_policy
from services.routing.domain.catalog_text import CatalogTextError, load
from services.routing.domain.spec_reader import Faults, SpecReader

T = TypeVar("T")
NAMELESS = "what-if"
"""The id of a single policy that has none."""


def policy_swap(text: str) -> PolicySwap:
    """One policy for everything, or the `policies` of a file, each for the decisions made under its id."""
    try:
        value = load(text)
        if isinstance(value, Mapping) and "policies" in value:
            return PolicySwap(by_id=_of_type(_faultless(read_part(text, "policies")), Policy))
    except CatalogTextError as error:
        raise refused([("", str(error))]) from error
    faults: Faults = []
    named = {"id": NAMELESS, **value} if isinstance(value, Mapping) else value
    reader = SpecReader(named, "", faults)
    policy = read_policy(reader)
    reader.close()
    if faults:
        raise refused(faults)
    return PolicySwap(policy)


def price_swap(text: str) -> PriceSwap:
    """The `prices`, `currency` and `fx` of a file; what else it holds is not looked at."""
    try:
        file = _faultless(read_part(text, "prices"))
    except CatalogTextError as error:
        raise refused([("", str(error))]) from error
    rules = _of_type(file, Price)
    if not rules and not file.fx:
        raise refused([("prices", "is required: there is neither a price nor a rate in this file")])
    return PriceSwap(file.currency, file.fx, rules)


def catalog_swap(text: str) -> CatalogSwap:
    """A whole file, as it would be by itself."""
    try:
        file = _faultless(read_file(text))
    except CatalogTextError as error:
        raise refused([("", str(error))]) from error
    faults = link_faults(file, None, None)
    if faults:
        raise refused(faults)
    return CatalogSwap(
        Catalog(
            revision=0,
            currency=file.currency_over(None),
            fx=file.fx,
            channels=_of_type(file, Channel),
            supplies=_of_type(file, Supply),
            prices=_of_type(file, Price),
            policies=_of_type(file, Policy),
            rules=_of_type(file, DegradationRule),
            models=_of_type(file, Model),
            tenants=_of_type(file, Tenant),
        )
    )


def _faultless(file: CatalogFile) -> CatalogFile:
    if file.faults:
        raise refused(list(file.faults))
    return file


def _of_type(file: CatalogFile, sort: type[T]) -> dict[str, T]:
    return {declared.id: declared.value for declared in file.declared if isinstance(declared.value, sort)}
