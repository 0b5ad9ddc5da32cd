"""Prices by tokens: context steps, service tiers, tier lists, caches, sorts of tokens, off-peak hours.

A price of a tier that is not stated is the standard one; a price beyond a step that is not stated is the one before it;
cached tokens without a price are ordinary input, and reasoning without a price is ordinary output.
"""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from cli.pricelist.table import Entry, amount_of, text_of

MILLION = Decimal(1_000_000)
TIERS: Mapping[str, str] = {
    "batches": "batch", "flex": "flex", "priority": "priority", "balanced": "balanced", "ultrafast": "ultrafast",
    "decisions": "decisions",
}  # fmt: skip
"""Suffix of a field -> value of the fact `service_tier`."""
FIELDS: Mapping[str, tuple[str, ...]] = {
    "input": ("input_cost_per_token",),
    "cached_input": ("cache_read_input_token_cost", "input_cost_per_token_cache_hit"),
    "cache_write": ("cache_creation_input_token_cost",),
    "cache_write_long": ("cache_creation_input_token_cost_above_1hr", "cache_creation_input_token_cost_above_12hr"),
    "input_audio": ("input_cost_per_audio_token",),
    "input_image": ("input_cost_per_image_token",),
    "output": ("output_cost_per_token",),
    "reasoning": ("output_cost_per_reasoning_token",),
    "output_audio": ("output_cost_per_audio_token",),
    "output_image": ("output_cost_per_image_token",),
}
"""Sort of tokens -> fields that state its price."""
STEPS = r"\w+_above_(\d+)k_tokens(?:_\w+)?"
INCLUSIVE = frozenset({"xai"})
"""Providers whose higher price begins with the step itself."""
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

Prices = dict[str, Decimal]
Row = dict[str, Any]


class NoPrice(Exception):
    """Why an entry cannot become a rule."""


def token_rule(entry: Entry) -> dict[str, Any]:
    """The figures of a rule by tokens. Raises NoPrice."""
    listed = entry.anything("tiered_pricing")
    rows = _listed_rows(entry, listed) if isinstance(listed, list) else list(_stepped_rows(entry))
    rule: dict[str, Any] = {"billing_mode": "per_token"}
    limit = entry.fields.get("max_output_tokens")
    if isinstance(limit, int) and not isinstance(limit, bool) and limit > 0:
        rule["max_output_tokens"] = limit
    return rule | (rows[0] if len(rows) == 1 and "hours" not in rows[0] else {"tiers": rows})


def _stepped_rows(entry: Entry) -> Iterator[Row]:
    steps = sorted({int(found[1]) for found in entry.matching(STEPS)})
    off_peak = _off_peak(entry)
    for suffix in [*_tiers_of(entry), ""]:
        when: Row = {"when": {"service_tier": TIERS[suffix]}} if suffix else {}
        for crossed in range(len(steps) + 1):
            prices = _prices(entry, steps[:crossed], suffix)
            end = _end(entry, steps, crossed)
            if off_peak is not None:
                cheaper, hours = off_peak
                yield {**_row(prices | cheaper), **end, **when, "hours": hours}
            yield {**_row(prices), **end, **when}


def _end(entry: Entry, steps: Sequence[int], crossed: int) -> Row:
    if crossed == len(steps):
        return {}
    inclusive = entry.fields.get("litellm_provider") in INCLUSIVE
    return {"up_to": steps[crossed] * 1000 - inclusive}


def _tiers_of(entry: Entry) -> list[str]:
    """Service tiers with a price of their own."""
    names = [name for sorts in FIELDS.values() for name in sorts]
    return [
        suffix
        for suffix in TIERS
        if any(found for name in names for found in entry.matching(rf"{name}(?:_above_\d+k_tokens)?_{suffix}"))
    ]


def _prices(entry: Entry, crossed: Sequence[int], suffix: str) -> Prices:
    found: Prices = {}
    for sort, names in FIELDS.items():
        amounts = [_resolved(entry, name, crossed, suffix) for name in names]
        stated = [amount for amount in amounts if amount is not None]
        if stated:
            found[sort] = max(stated)  # one price under two names, or two times to live of which a usage tells one
    own = bool(suffix) and entry.states(f"output_cost_per_token_{suffix}")
    if own and not entry.states(f"output_cost_per_reasoning_token_{suffix}"):
        found.pop("reasoning", None)  # a tier with a price of its own for output has it for reasoning too
    if "output_image" in found and not found.get("output"):
        found["output"] = found["output_image"]  # what such a model makes is pictures
    if "input" not in found:
        raise NoPrice("the table states no price of input tokens")
    if "output" not in found and entry.mode != "embedding":
        raise NoPrice("the table states no price of output tokens")
    return found


def _resolved(entry: Entry, name: str, crossed: Sequence[int], suffix: str) -> Decimal | None:
    def stated(key: str) -> Decimal | None:
        own = entry.price(f"{key}_{suffix}") if suffix else None
        return entry.price(key) if own is None else own

    amount = stated(name)
    for step in crossed:
        beyond = stated(f"{name}_above_{step}k_tokens")
        amount = amount if beyond is None else beyond
    return amount


def _row(prices: Prices) -> Row:
    return {f"{sort}_per_million": text_of(amount * MILLION) for sort, amount in prices.items()}


def _listed_rows(entry: Entry, listed: Sequence[Any]) -> list[Row]:
    """A list of tiers by range: one of them holds for the whole request, from < tokens <= to."""
    if entry.anything("off_peak_pricing") is not None or _tiers_of(entry):
        raise NoPrice("a list of tiers beside off-peak hours or service tiers is not understood")
    for names in FIELDS.values():
        for name in names:
            entry.anything(name)  # the list stands in their place
    rows: list[Row] = []
    reached = Decimal(0)
    for item in sorted(listed, key=_start):
        begin, end = (_bound(item, index) for index in (0, 1))
        if begin != reached:
            raise NoPrice(f"its tiers leave a gap or overlap at {reached:f} tokens")
        reached = end
        rows.append({**_row(_prices(Entry({**item, "mode": entry.mode}), (), "")), "up_to": int(end)})
    if not rows:
        raise NoPrice("its list of tiers is empty")
    del rows[-1]["up_to"]  # what is longer than the last range is charged at the last
    return rows


def _start(item: Any) -> Decimal:
    return _bound(item, 0)


def _bound(item: Any, index: int) -> Decimal:
    limits = item.get("range") if isinstance(item, Mapping) else None
    amount = amount_of(limits[index]) if isinstance(limits, list) and len(limits) == 2 else None
    if amount is None:
        raise NoPrice("its tiers are not by ranges of input tokens")
    return amount


def _off_peak(entry: Entry) -> tuple[Prices, list[Row]] | None:
    """(prices of the cheap hours, the hours)."""
    block = entry.anything("off_peak_pricing")
    if not isinstance(block, Mapping):
        return None
    if str(block.get("weekday_timezone") or "UTC") != "UTC":
        raise NoPrice(f"its off-peak days are of another time zone ({block['weekday_timezone']})")
    prices: Prices = {}
    for sort, names in FIELDS.items():
        amount = next((amount for name in names if (amount := amount_of(block.get(name))) is not None), None)
        if amount is not None:
            prices[sort] = amount
    hours = list(_windows(block.get("hours_utc"), None))
    for rule in block.get("windows") or ():
        hours += _windows(rule.get("hours_utc"), rule.get("weekdays"))
    if not hours:
        raise NoPrice("its off-peak hours are not told")
    return prices, hours


def _windows(hours: Any, weekdays: Any) -> Iterator[Row]:
    """The table goes by the weekday of the moment, a rule by the day on which the window begins: one that crosses
    midnight is told as two."""
    days: Row = {"days": [DAYS[int(day) - 1] for day in weekdays]} if weekdays else {}
    for text in [hours] if isinstance(hours, str) else hours or ():
        begin, _, end = (part.strip() for part in text.partition("-"))
        if begin > end != "00:00":
            yield {"from": begin, "to": "00:00", **days}
            begin = "00:00"
        yield {"from": begin, "to": end, **days}
