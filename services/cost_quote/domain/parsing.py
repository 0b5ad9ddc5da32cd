"""Declarations read into price rules.

Laws of this file:
- a float in a declaration is refused, never rounded;
- a rule that cannot be understood is refused whole, with the path of each fault (`bands[0].price: …`);
- zero is a price only where it is written: a missing figure is never free (COST-4).
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from libs.faults.fault import Fault
from services.cost_quote.domain.rules import (
    ALWAYS,
    ONE,
    TOKEN_PRICES,
    ZERO,
    Band,
    BillingMode,
    Condition,
    ImageTokens,
    Multiplier,
    PriceRule,
    Rate,
    Surcharge,
    TokenTier,
    VideoTokens,
    Window,
)

Faults = list[tuple[str, str]]
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
FALLS_BACK = {
    "cached_input": "input", "cache_write": "input", "cache_write_long": "cache_write", "input_audio": "input",
    "input_image": "input", "reasoning": "output", "output_audio": "output", "output_image": "output",
}  # fmt: skip
"""A sort of tokens without a price of its own costs what that one costs."""
TOKENS_PER_RATE = Decimal(1_000_000)
BEYOND_A_RATE = (
    "quantity", "unit", "round_up_to", "least_units", "most_units", "times", "surcharges", "multipliers",
    "video_tokens", "credits", "until",
)  # fmt: skip
"""With any of these a price is more than a quantity times one rate."""


class RuleError(ValueError):
    """A declaration that cannot be a rule. `faults` are (path within the declaration, reason)."""

    def __init__(self, faults: Sequence[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{path}: {reason}" for path, reason in faults))
        self.faults = tuple(faults)


def parse_rule(spec: Mapping[str, Any]) -> PriceRule:
    """The rule that a catalogue entry of `prices` declares. Raises RuleError with every fault found."""
    faults: Faults = []
    named = str(spec.get("billing_mode", ""))
    if named not in set(BillingMode):
        raise RuleError([("billing_mode", f"must be one of {', '.join(BillingMode)}, not {named!r}")])
    mode = BillingMode(named)
    rate, rates = _optional(spec, "rate", faults), tuple(_rates(spec, faults))
    video = _video_tokens(spec, faults)
    parts: dict[str, Any] = {
        "bands": tuple(_bands(spec.get("bands") or (), faults)),
        "tiers": tuple(_tiers(spec, faults)) if mode is BillingMode.PER_TOKEN and video is None else (),
        "quantity": str(spec.get("quantity") or ""),
        "pixels": spec.get("unit") == "pixel",
        "round_up_to": _optional(spec, "round_up_to", faults) or ZERO,
        "least_units": _optional(spec, "least_units", faults) or ZERO,
        "most_units": _optional(spec, "most_units", faults),
        "times": str(spec.get("times") or ""),
        "surcharges": tuple(_surcharges(spec, faults)),
        "multipliers": tuple(_multipliers(spec, faults)),
        "video_tokens": video,
        "image_tokens": _image_tokens(spec, faults),
        "input_image_tokens": _count(spec, "input_image_tokens", faults),
        "max_output_tokens": _count(spec, "max_output_tokens", faults),
        "credit": _credit(spec, faults),
        "whole_credits": _mapping(spec, "credits").get("whole") is not False,
        "until": _until(spec, faults),
    }
    minimum, per = _optional(spec, "minimum", faults) or ZERO, _per(spec, video, faults)
    if not faults and rate is None and not (rates or parts["bands"] or parts["tiers"]):
        faults.append(("", f"a {mode} rule needs a rate, rates, bands or per-million prices"))
    if faults:
        raise RuleError(faults)
    beyond = rates or minimum or per != ONE or any(name in spec for name in BEYOND_A_RATE)
    plain = mode not in (BillingMode.PER_TOKEN, BillingMode.PER_REQUEST) and not beyond
    return PriceRule(
        id=str(spec.get("id", "")),
        version=int(spec.get("version", 1)),
        currency=str(spec.get("currency", "")),
        billing_mode=mode,
        rate=rate,
        rates=rates,
        minimum=minimum,
        per=per,
        plain_rate=rate if plain else None,
        **parts,
    )


def parse_rules(specs: Sequence[Mapping[str, Any]], pointer: str) -> dict[str, PriceRule]:
    """The rules by id. Fault validation_failed names every declaration that is none; `pointer` leads to the list."""
    rules: dict[str, PriceRule] = {}
    faults: Faults = []
    for index, spec in enumerate(specs):
        try:
            rule = parse_rule(spec)
        except RuleError as error:
            faults += [(f"{pointer}/{index}/spec/{path}", reason) for path, reason in error.faults]
        else:
            rules[rule.id] = rule
    if faults:
        raise Fault.invalid(*faults)
    return rules


def _amount(value: Any, path: str, faults: Faults) -> Decimal:
    if (isinstance(value, float) and not value.is_integer()) or isinstance(value, bool):
        faults.append((path, f'write the amount as text, "{value}", so that it stays exact'))
        return ZERO
    try:
        amount = Decimal(str(int(value) if isinstance(value, float) else value))
    except (InvalidOperation, OverflowError, ValueError):
        faults.append((path, f"is no decimal number: {value!r}"))
        return ZERO
    if not amount.is_finite() or amount < 0:
        faults.append((path, f"must not be negative or endless: {value!r}"))
        return ZERO
    return amount


def _optional(spec: Mapping[str, Any], key: str, faults: Faults, path: str = "") -> Decimal | None:
    return _amount(spec[key], f"{path}{key}", faults) if spec.get(key) is not None else None


def _count(spec: Mapping[str, Any], key: str, faults: Faults, path: str = "") -> int | None:
    amount = _optional(spec, key, faults, path)
    return None if amount is None else int(amount)


def _per(spec: Mapping[str, Any], video: VideoTokens | None, faults: Faults) -> Decimal:
    per = _optional(spec, "per", faults)
    if per is not None and not per:
        faults.append(("per", "must be above 0"))
        return ONE
    return per or (ONE if video is None else TOKENS_PER_RATE)


def _condition(entry: Mapping[str, Any], path: str, faults: Faults) -> Condition:
    when, hours = entry.get("when") or {}, entry.get("hours") or ()
    if not isinstance(when, Mapping):
        faults.append((f"{path}.when", "must be a mapping"))
        return ALWAYS
    windows = [hours] if isinstance(hours, Mapping) else hours
    return Condition(dict(when), tuple(_window(item, f"{path}.hours", faults) for item in windows))


def _window(entry: Mapping[str, Any], path: str, faults: Faults) -> Window:
    named = [str(day).lower() for day in entry.get("days") or DAYS]
    if any(day not in DAYS for day in named):
        faults.append((f"{path}.days", f"must be some of {', '.join(DAYS)}"))
        named = list(DAYS)
    start, end = (_minutes(entry.get(name), f"{path}.{name}", faults) for name in ("from", "to"))
    return Window(start, end, frozenset(DAYS.index(day) for day in named))


def _minutes(value: Any, path: str, faults: Faults) -> int:
    hour, _, minute = str(value).partition(":")
    if hour.isdecimal() and minute.isdecimal() and int(hour) < 24 and int(minute) < 60:
        return int(hour) * 60 + int(minute)
    faults.append((path, f'must be a time of day in UTC, for example "16:30", not {value!r}'))
    return 0


def _rates(spec: Mapping[str, Any], faults: Faults) -> Iterable[Rate]:
    for index, entry in enumerate(spec.get("rates") or ()):
        path = f"rates[{index}]"
        yield Rate(_amount(entry.get("rate", ""), f"{path}.rate", faults), _condition(entry, path, faults))
    table = spec.get("table")
    if isinstance(table, Mapping):
        yield from _from_table(table.get("by") or (), table.get("rates") or {}, {}, "table.rates", faults)


def _from_table(names: Sequence[str], rates: Any, when: Mapping[str, Any], path: str, faults: Faults) -> Iterable[Rate]:
    """A table by one or more facts as rates in its order; `*` stands for every value and comes last."""
    if not names:
        yield Rate(_amount(rates, path, faults), Condition(when))
        return
    if not isinstance(rates, Mapping):
        faults.append((path, f"must be a mapping by {names[0]}"))
        return
    for value in sorted(rates, key=lambda value: value == "*"):
        held = when if value == "*" else {**when, names[0]: value}
        yield from _from_table(names[1:], rates[value], held, f"{path}.{value}", faults)


def _bands(entries: Any, faults: Faults) -> Iterable[Band]:
    for index, entry in enumerate(entries):
        path = f"bands[{index}]"
        low = _amount(entry.get("from", ""), f"{path}.from", faults)
        high = _amount(entry.get("to", ""), f"{path}.to", faults)
        if high < low:
            faults.append((path, f"ends at {high}, before it begins at {low}"))
        if not entry.get("field"):
            faults.append((f"{path}.field", "names no field of the input"))
        yield Band(str(entry.get("field", "")), low, high, _amount(entry.get("price", ""), f"{path}.price", faults))


def _tiers(spec: Mapping[str, Any], faults: Faults) -> Iterable[TokenTier]:
    plain = any(f"{name}_per_million" in spec for name in TOKEN_PRICES)
    entries = spec.get("tiers") or ([spec] if plain else [])
    for index, entry in enumerate(entries):
        path = f"tiers[{index}]." if spec.get("tiers") else ""
        prices: dict[str, Decimal] = {}
        for name in TOKEN_PRICES:
            key = f"{name}_per_million"
            found = _optional(entry, key, faults, path)
            prices[name] = prices[FALLS_BACK[name]] if found is None and name in FALLS_BACK else found or ZERO
        if entry.get("input_per_million") is None:
            faults.append((f"{path}input_per_million", "is required"))
        condition = _condition(entry, path.rstrip("."), faults) if path else ALWAYS
        yield TokenTier(prices, _count(entry, "up_to", faults, path), condition)


def _surcharges(spec: Mapping[str, Any], faults: Faults) -> Iterable[Surcharge]:
    for index, entry in enumerate(spec.get("surcharges") or ()):
        path = f"surcharges[{index}]"
        yield Surcharge(
            field=str(entry.get("field") or ""),
            rate=_amount(entry.get("rate", ""), f"{path}.rate", faults),
            free=_optional(entry, "free", faults, f"{path}.") or ZERO,
            most=_optional(entry, "most", faults, f"{path}."),
            condition=_condition(entry, path, faults),
        )


def _multipliers(spec: Mapping[str, Any], faults: Faults) -> Iterable[Multiplier]:
    for index, entry in enumerate(spec.get("multipliers") or ()):
        path = f"multipliers[{index}]"
        yield Multiplier(_amount(entry.get("factor", ""), f"{path}.factor", faults), _condition(entry, path, faults))


def _video_tokens(spec: Mapping[str, Any], faults: Faults) -> VideoTokens | None:
    entry = spec.get("video_tokens")
    if not isinstance(entry, Mapping):
        return None
    frames = {
        str(resolution): {
            str(ratio): _pixels(size, f"video_tokens.frames.{resolution}.{ratio}", faults)
            for ratio, size in by_ratio.items()
        }
        for resolution, by_ratio in (entry.get("frames") or {}).items()
    }
    if not frames or not all(frames.values()):
        faults.append(("video_tokens.frames", "must name the pixels of at least one resolution and ratio"))
    given = entry.get("input_video") or {}
    floor = given.get("floor_tokens")
    floors = floor if isinstance(floor, Mapping) else {} if floor is None else {"*": floor}
    path = "video_tokens.input_video."
    return VideoTokens(
        fps=_amount(entry.get("fps", ""), "video_tokens.fps", faults),
        frames=frames,
        default_resolution=str(entry.get("default_resolution") or ""),
        default_ratio=str(entry.get("default_ratio") or ""),
        input_video=str(given.get("field") or ("input_video_s" if given else "")),
        input_given=str(given.get("given") or "reference_videos"),
        input_most=_optional(given, "most", faults, path),
        floor={str(name): _amount(value, f"{path}floor_tokens", faults) for name, value in floors.items()},
    )


def _pixels(size: Any, path: str, faults: Faults) -> int:
    width, _, height = str(size).partition("x")
    if width.isdecimal() and height.isdecimal() and int(width) and int(height):
        return int(width) * int(height)
    faults.append((path, f'must be WIDTHxHEIGHT in pixels, for example "1280x720", not {size!r}'))
    return 0


def _image_tokens(spec: Mapping[str, Any], faults: Faults) -> ImageTokens | None:
    entry = spec.get("image_tokens")
    if not isinstance(entry, Mapping):
        return None
    sizes: dict[str, dict[str, int]] = {}
    for size, by_quality in entry.items():
        rows = by_quality if isinstance(by_quality, Mapping) else {"*": by_quality}
        path = f"image_tokens.{size}"
        sizes[str(size)] = {str(name): int(_amount(count, f"{path}.{name}", faults)) for name, count in rows.items()}
    return ImageTokens(sizes)


def _credit(spec: Mapping[str, Any], faults: Faults) -> Decimal | None:
    entry = _mapping(spec, "credits")
    return _amount(entry.get("price", ""), "credits.price", faults) if entry else None


def _mapping(spec: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = spec.get(key)
    return value if isinstance(value, Mapping) else {}


def _until(spec: Mapping[str, Any], faults: Faults) -> datetime | None:
    if spec.get("until") is None:
        return None
    try:
        return datetime.strptime(str(spec["until"]), "%Y-%m-%d").replace(tzinfo=UTC) + timedelta(days=1)
    except ValueError:
        faults.append(("until", f'must be a day, for example "2026-12-01", not {spec["until"]!r}'))
        return None
