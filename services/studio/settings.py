"""Settings of the studio: the accounts, who answers un-prefixed paths, and how clips are drawn."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import yaml

from services.studio.domain.accounts import DIALECTS, KINDS, MOTIFS, PLAIN, UNITS, Account, Model, Price, Style
from services.studio.engines.shelf import CHAT_CONTEXT, VECTOR, missing

RESERVED = ("api", "healthz", "lab", "v1")  # first parts of paths that are not accounts
DEFAULT_FILE = Path(__file__).with_name("accounts.yaml")


class SettingsError(ValueError):
    """The configuration cannot be used; the text names the place."""


@dataclass(frozen=True, slots=True)
class Render:
    """`workers` renders run at once; `scale` multiplies the drawn size of clips; `fps` is their real frame rate."""

    workers: int = 2
    scale: float = 1.0
    fps: int = 12


@dataclass(frozen=True, slots=True)
class StudioConfig:
    """Everything that a studio is started with."""

    accounts: Mapping[str, Account]
    defaults: Mapping[str, str]
    render: Render = Render()
    local_models: bool = False

    @classmethod
    def default(cls) -> StudioConfig:
        """The accounts of `accounts.yaml`."""
        return cls.from_file(DEFAULT_FILE)

    @classmethod
    def from_file(cls, path: Path) -> StudioConfig:
        """Reads a YAML file. Raises SettingsError."""
        try:
            return cls.from_mapping(yaml.safe_load(path.read_text(encoding="utf-8")))
        except (OSError, yaml.YAMLError) as error:
            raise SettingsError(f"{path}: {error}") from error

    @classmethod
    def from_mapping(cls, source: Any) -> StudioConfig:
        """Reads the same shape from plain values. Raises SettingsError."""
        given = _object(source, "the configuration", {"accounts", "defaults", "render"})
        listed = given.get("accounts")
        if not isinstance(listed, list) or not listed:
            raise SettingsError("accounts: a list of at least one account")
        accounts = {account.id: account for account in (read_account(item) for item in listed)}
        if len(accounts) < len(listed):
            raise SettingsError("accounts: two accounts have the same id")
        defaults = {account.dialect: account.id for account in reversed(accounts.values()) if account.dialect in PLAIN}
        defaults |= _object(given.get("defaults", {}), "defaults", set(PLAIN))
        for dialect, account_id in defaults.items():
            if account_id not in accounts or accounts[account_id].dialect != dialect:
                raise SettingsError(f"defaults.{dialect}: no {dialect} account is called {account_id!r}")
        render = _object(given.get("render", {}), "render", {"workers", "scale", "fps"})
        return cls(accounts, defaults, Render(**render))

    def with_local_models(self) -> StudioConfig:
        """The same studio with real models for chat, embeddings and OCR, in their bounds. Raises SettingsError."""
        lacking = missing()
        if lacking:
            names = ", ".join(lacking)
            raise SettingsError(f"local models need packages that are not installed ({names}): make local-models")
        accounts = {
            key: replace(account, models={name: _in_bounds(model) for name, model in account.models.items()})
            for key, account in self.accounts.items()
        }
        return replace(self, accounts=accounts, local_models=True)

    def adjusted(self, **changes: Any) -> StudioConfig:
        """The same studio with these fields changed on every account (say `queue_s=0, render_s=0` for a test)."""
        accounts = {key: replace(account, **changes) for key, account in self.accounts.items()}
        return replace(self, accounts=accounts)


def _in_bounds(model: Model) -> Model:
    """A model as the engine behind it bounds it."""
    if model.kind == "chat":
        context = min(model.context_tokens, CHAT_CONTEXT)
        return replace(model, context_tokens=context, max_output_tokens=min(model.max_output_tokens, context // 2))
    return replace(model, dimensions=min(model.dimensions, VECTOR)) if model.kind == "embedding" else model


def read_account(source: Any) -> Account:
    """Reads one account. Raises SettingsError."""
    given = _object(source, "account", {field.name for field in fields(Account)})
    where = f"account {given.get('id')!r}"
    for required in ("id", "dialect", "key", "models"):
        if not given.get(required):
            raise SettingsError(f"{where}: {required} is missing")
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", str(given["id"])) or given["id"] in RESERVED:
        raise SettingsError(f"{where}: an id is small letters, digits and dashes, and none of {', '.join(RESERVED)}")
    if given["dialect"] not in DIALECTS:
        raise SettingsError(f"{where}: dialect is one of {', '.join(DIALECTS)}")
    models = [read_model(item, where) for item in given.pop("models")]
    if "style" not in given:
        if any(model.draws for model in models):
            raise SettingsError(f"{where}: style is missing")
        return Account(**given, models={model.id: model for model in models})
    style = _object(given.pop("style"), f"{where}.style", {"palette", "motif"})
    if style.get("motif") not in MOTIFS or len(style.get("palette", ())) != 3:
        raise SettingsError(f"{where}.style: a palette of three colours and a motif of {', '.join(MOTIFS)}")
    return Account(
        **given,
        style=Style(tuple(style["palette"]), style["motif"]),
        models={model.id: model for model in models},
    )


def read_model(source: Any, where: str) -> Model:
    """Reads one model of an account. Raises SettingsError."""
    given = _object(source, f"{where}.models", {field.name for field in fields(Model)})
    where = f"{where} model {given.get('id')!r}"
    if not given.get("id") or given.get("kind") not in KINDS:
        raise SettingsError(f"{where}: id and a kind of {', '.join(KINDS)} are needed")
    for name in ("resolutions", "sizes", "features"):
        if name in given:
            given[name] = tuple(given[name])
    given["price"] = read_price(given.get("price"), where)
    return Model(**given)


def read_price(source: Any, where: str) -> Price:
    """Reads a price; amounts are decimal strings. Raises SettingsError."""
    given = _object(source, f"{where}.price", {field.name for field in fields(Price)})
    if given.get("unit") not in UNITS:
        raise SettingsError(f"{where}.price: unit is one of {', '.join(UNITS)}")
    try:
        return Price(
            currency=str(given["currency"]),
            unit=given["unit"],
            rate=Decimal(str(given["rate"])),
            rates={str(key): Decimal(str(rate)) for key, rate in given.get("rates", {}).items()},
            minimum=Decimal(str(given.get("minimum", "0"))),
        )
    except (KeyError, InvalidOperation) as error:
        raise SettingsError(f"{where}.price: {error!r}") from error


def _object(source: Any, what: str, known: set[str]) -> dict[str, Any]:
    if not isinstance(source, Mapping):
        raise SettingsError(f"{what}: an object is needed")
    unknown = sorted(set(source) - known)
    if unknown:
        raise SettingsError(f"{what}: does not know {', '.join(map(str, unknown))}")
    return dict(source)
