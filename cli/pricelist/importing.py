"""The whole table as rules, with what was left out and why.

Laws of this file:
- a model gets one rule, or stands among the unpriced with the reason;
- zero is imported where the table states zero, and told;
- what a rule leaves out of its entry is told with it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fnmatch import fnmatchcase
from re import fullmatch
from typing import Any

from cli.pricelist.table import Entry, fingerprint, resolved
from cli.pricelist.tokens import NoPrice, token_rule
from cli.pricelist.units import page_rule, picture_rule, request_rule, sound_rule, speech_rule, video_rule

Rule = dict[str, Any]
IDENTIFIER = r"[A-Za-z0-9][A-Za-z0-9._:@+/-]{0,199}"
SOURCE = "litellm model_prices_and_context_window.json"
TOKENS = ("input_cost_per_token", "output_cost_per_token")
UPLIFTS = {
    "regional_processing_uplift_multiplier_eu": {"data_residency": "eu"},
    "regional_processing_uplift_multiplier_us": {"data_residency": "us"},
    "fedramp_uplift_multiplier": {"data_residency": "fedramp"},
    "regional_endpoint_uplift_multiplier": {"endpoint": "regional"},
}
"""Multiplier -> the condition that it holds under."""
TOLD_ELSEWHERE = ("input_dbu_cost_per_token", "output_dbu_cost_per_token")
"""The same prices in a provider's own unit."""


@dataclass(slots=True)
class Imported:
    """What became of the table."""

    rules: list[Rule] = field(default_factory=list)
    unpriced: dict[str, str] = field(default_factory=dict)
    """Model -> reason."""
    warnings: dict[str, list[str]] = field(default_factory=dict)
    """Model -> what its rule does not say."""


def import_table(table: Mapping[str, Mapping[str, Any]], currency: str = "USD", only: str = "*") -> Imported:
    """Rules of version 1 for every model whose name fits."""
    found = Imported()
    for name in table:
        if not fnmatchcase(name, only):
            continue
        try:
            rule, warnings = _rule_of(table, name, currency)
        except NoPrice as reason:
            found.unpriced[name] = str(reason)
            continue
        found.rules.append(rule)
        if warnings:
            found.warnings[name] = warnings
    return found


def _rule_of(table: Mapping[str, Mapping[str, Any]], name: str, currency: str) -> tuple[Rule, list[str]]:
    if not fullmatch(IDENTIFIER, name):
        raise NoPrice("its name cannot be the id of a rule")
    fields = resolved(table, name)
    if isinstance(fields, str):
        raise NoPrice(fields)
    entry = Entry(fields)
    rule = {"id": name, "version": 1, "currency": currency, **_priced(entry)}
    multipliers = [*rule.pop("multipliers", ()), *_uplifts(entry)]
    if multipliers:
        rule["multipliers"] = multipliers
    if fullmatch(r"\d{4}-\d{2}-\d{2}", str(fields.get("deprecation_date") or "")):
        rule["until"] = fields["deprecation_date"]
    rule |= {"source": str(fields.get("source") or SOURCE), "source_hash": fingerprint(fields)}
    return rule, list(_warnings(entry, rule))


def _priced(entry: Entry) -> Rule:
    if entry.states("cost_per_second"):
        raise NoPrice("it is capacity that is bought by time, not work that is priced by request")
    if entry.states("input_cost_per_request"):
        raise NoPrice("a fee for each request beside tokens is not understood")
    for name in TOLD_ELSEWHERE:
        entry.anything(name)
    return _way_of(entry)(entry)


def _way_of(entry: Entry) -> Callable[[Entry], Rule]:
    """By what its mode is charged; tokens where they are stated and worth something, being what providers bill by."""
    worth = any(entry.fields.get(name) for name in (*TOKENS, "output_cost_per_image_token"))
    tokens = entry.states(*TOKENS) or isinstance(entry.fields.get("tiered_pricing"), list)
    if entry.mode == "video_generation":
        return video_rule
    if entry.mode in ("image_generation", "image_edit"):
        return token_rule if worth and entry.states("input_cost_per_token") else picture_rule
    if entry.mode == "ocr" and not worth:
        return page_rule
    if entry.mode == "audio_transcription" and not worth:
        return sound_rule
    if entry.states("input_cost_per_query") and not worth:
        return request_rule
    if entry.mode == "search":
        return request_rule
    if entry.states("input_cost_per_character") and not worth and entry.mode in ("audio_speech", ""):
        return speech_rule
    if entry.states("input_cost_per_second") and not tokens:
        return sound_rule
    return token_rule


def _uplifts(entry: Entry) -> list[Rule]:
    found = []
    for name, when in UPLIFTS.items():
        factor = entry.price(name)
        if factor is not None:
            found.append({"when": when, "factor": format(factor, "f")})
    return found


def _warnings(entry: Entry, rule: Rule) -> list[str]:
    found = [f"left out: {name}" for name in entry.unread()]
    comment = (entry.fields.get("metadata") or {}).get("comment")
    if comment:
        found.append(f"in prose: {comment}")
    if all(amount == 0 for amount in amounts_in(rule)):
        found.append("the table states zero: free, or not known to it")
    if any("ratio" in item.get("when", {}) for item in rule.get("multipliers", ())):
        found.append("rates are those of 16:9; other ratios are scaled by their pixels, to nine digits, upwards")
    return found


MONEY = ("rate", "price", "minimum")


def amounts_in(value: Any, name: str = "") -> list[Decimal]:
    """Every amount of money in a rule, in its order."""
    if isinstance(value, Mapping):
        return [amount for key, part in value.items() for amount in amounts_in(part, key)]
    if isinstance(value, list):
        return [amount for part in value for amount in amounts_in(part, name)]
    money = name in MONEY or name.endswith("_per_million")
    return [Decimal(str(value))] if money else []
