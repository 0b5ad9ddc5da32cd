"""What a call costs by LiteLLM's table itself, written from what its fields mean and knowing nothing of our rules.

It reads the table with the digits that it shows and goes through a call figure by figure; no rule, no tier row, no
condition is made. `calls_of` says at random what may be asked of an entry; `worth` says what it costs.
"""

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal, localcontext
from typing import Any

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
SUFFIX = {"batch": "batches"}
PRIORITIES = ("flex", "priority", "balanced", "ultrafast", "batch")
SIZED = re.compile(r"output_cost_per_image_(\d+(?:\.\d+)?K?)")
STEP = re.compile(r"_above_(\d+)k_tokens")


@dataclass(frozen=True, slots=True)
class Call:
    """One call: facts of the request, what was used, the time."""

    facts: Mapping[str, Any] = field(default_factory=dict)
    used: Mapping[str, int] = field(default_factory=dict)
    at: datetime = MONDAY


def worth(entry: Mapping[str, Any], call: Call) -> Decimal:
    """The price of the call."""
    with localcontext(prec=200):
        amount = _by_tokens(entry, call) if call.used else _by_units(entry, call.facts)
        return amount * _uplift(entry, call.facts)


def _uplift(entry: Mapping[str, Any], facts: Mapping[str, Any]) -> Decimal:
    names = {
        "eu": "regional_processing_uplift_multiplier_eu",
        "us": "regional_processing_uplift_multiplier_us",
        "fedramp": "fedramp_uplift_multiplier",
    }
    name = names.get(str(facts.get("data_residency")), "")
    factor = Decimal(entry.get(name, 1))
    if facts.get("endpoint") == "regional":
        factor *= Decimal(entry.get("regional_endpoint_uplift_multiplier", 1))
    return factor


# --- Tokens -----------------------------------------------------------------------------------------------------------


def _by_tokens(entry: Mapping[str, Any], call: Call) -> Decimal:
    used = {name: call.used.get(name, 0) for name in NAMES}
    tier = str(call.facts.get("service_tier") or "")
    price = _listed(entry, used["input"]) if "tiered_pricing" in entry else entry
    found = _Prices(price, used["input"], SUFFIX.get(tier, tier), entry.get("litellm_provider") == "xai")
    cheap = entry.get("off_peak_pricing")
    if cheap and _is_off_peak(cheap, call.at):
        found.cheap = cheap
    read, made = found.one("input_cost_per_token") or Decimal(0), found.one("output_cost_per_token")
    drawn = found.one("output_cost_per_image_token")
    if not made and drawn is not None:
        made = drawn
    made = made or Decimal(0)
    write = _or(found.one("cache_creation_input_token_cost"), read)
    long = _or(found.one("cache_creation_input_token_cost_above_1hr"), None)
    if long is None:
        long = _or(found.one("cache_creation_input_token_cost_above_12hr"), write)
    cached = _or(found.one("cache_read_input_token_cost"), found.one("input_cost_per_token_cache_hit"))
    thought = found.one("output_cost_per_reasoning_token")
    if tier and f"output_cost_per_token_{found.suffix}" in price:
        thought = found.exactly("output_cost_per_reasoning_token")
    parts = [
        (used["cached_input"], _or(cached, read)),
        (used["cache_write"] - used["cache_write_long"], write),
        (used["cache_write_long"], long),
        (used["input_audio"], _or(found.one("input_cost_per_audio_token"), read)),
        (used["input_image"], _or(found.one("input_cost_per_image_token"), read)),
        (used["reasoning"], _or(thought, made)),
        (used["output_audio"], _or(found.one("output_cost_per_audio_token"), made)),
        (used["output_image"], _or(drawn, made)),
    ]
    text_in = used["input"] - used["cached_input"] - used["cache_write"] - used["input_audio"] - used["input_image"]
    text_out = used["output"] - used["reasoning"] - used["output_audio"] - used["output_image"]
    return sum((count * rate for count, rate in parts), text_in * read + text_out * made)


def _or(amount: Decimal | None, other: Any) -> Any:
    return other if amount is None else amount


NAMES = (
    "input", "cached_input", "cache_write", "cache_write_long", "input_audio", "input_image", "output", "reasoning",
    "output_audio", "output_image",
)  # fmt: skip


class _Prices:
    """Prices of one call of an entry: beyond steps of the context, in its service tier, at its hour."""

    def __init__(self, entry: Mapping[str, Any], tokens: int, suffix: str, inclusive: bool) -> None:
        self.entry, self.suffix = entry, suffix
        self.cheap: Mapping[str, Any] = {}
        steps = {int(step) for name in entry for step in STEP.findall(name)}
        self.crossed = sorted(n for n in steps if tokens > n * 1000 or (inclusive and tokens == n * 1000))

    def exactly(self, name: str) -> Decimal | None:
        """In this tier alone."""
        value = self.entry.get(f"{name}_{self.suffix}")
        return None if value is None else Decimal(value)

    def one(self, name: str) -> Decimal | None:
        """The last price that is stated on the way up."""
        if name in self.cheap:
            return Decimal(self.cheap[name])
        found = None
        for key in (name, *(f"{name}_above_{step}k_tokens" for step in self.crossed)):
            value = self.entry.get(f"{key}_{self.suffix}", self.entry.get(key)) if self.suffix else self.entry.get(key)
            found = found if value is None else Decimal(value)
        return found


def _listed(entry: Mapping[str, Any], tokens: int) -> Mapping[str, Any]:
    for item in entry["tiered_pricing"]:
        if item["range"][0] < tokens <= item["range"][1]:
            return dict(item)
    first, last = entry["tiered_pricing"][0], entry["tiered_pricing"][-1]
    return dict(last if tokens else first)


def _is_off_peak(block: Mapping[str, Any], at: datetime) -> bool:
    clock = f"{at:%H:%M}"
    for rule in block.get("windows", ()):
        if at.isoweekday() not in rule.get("weekdays", range(1, 8)):
            continue
        hours = rule["hours_utc"]
        for text in [hours] if isinstance(hours, str) else hours:
            begin, end = text.split("-")
            if begin <= clock < end if begin < end else clock >= begin or clock < end:
                return True
    return False


# --- Units ------------------------------------------------------------------------------------------------------------


def _by_units(entry: Mapping[str, Any], facts: Mapping[str, Any]) -> Decimal:
    mode = entry.get("mode")
    if mode == "video_generation":
        return _video(entry, facts)
    if mode in ("image_generation", "image_edit"):
        return _pictures(entry, facts)
    if mode == "ocr":
        return _pages(entry, facts)
    if "characters" in facts:
        return Decimal(entry["input_cost_per_character"]) * facts["characters"]
    if "audio_s" in facts:
        rate = entry.get("output_cost_per_second") or entry.get("input_cost_per_second")
        return Decimal(rate or 0) * Decimal(str(facts["audio_s"]))
    return Decimal(entry["input_cost_per_query"])


def _video(entry: Mapping[str, Any], facts: Mapping[str, Any]) -> Decimal:
    plain = entry.get("output_cost_per_second", entry.get("output_cost_per_video_per_second"))
    rate = entry.get(f"output_cost_per_second_{facts.get('resolution')}", plain)
    free = (entry.get("provider_specific_entry") or {}).get("minimax_free_input_images", 0)
    beyond = max(0, facts.get("reference_images", 0) - free)
    amount = Decimal(rate) * Decimal(str(facts["duration_s"]))
    amount += Decimal(entry.get("input_cost_per_image") or 0) * beyond
    return amount + Decimal(entry.get("input_cost_per_video_per_second") or 0) * facts.get("input_video_s", 0)


def _pictures(entry: Mapping[str, Any], facts: Mapping[str, Any]) -> Decimal:
    count, read = facts.get("n", 1), Decimal(entry.get("input_cost_per_image") or 0)
    sized = next((entry[key] for key in _sized(facts) if key in entry), entry.get("output_cost_per_image"))
    if sized is not None:
        return Decimal(sized) * count + read * facts.get("reference_images", 0)
    if "input_cost_per_image" in entry:
        return read * count
    width, height = (int(side) for side in facts["size"].split("x"))
    each = Decimal(entry.get("input_cost_per_pixel") or 0) + Decimal(entry.get("output_cost_per_pixel") or 0)
    return each * width * height * count


def _sized(facts: Mapping[str, Any]) -> Iterator[str]:
    for value in (facts.get("size"), facts.get("resolution")):
        yield f"output_cost_per_image_{value}"


def _pages(entry: Mapping[str, Any], facts: Mapping[str, Any]) -> Decimal:
    batches = "_batches" if facts.get("service_tier") == "batch" and "ocr_cost_per_page_batches" in entry else ""
    each = Decimal(entry[f"ocr_cost_per_page{batches}"])
    if facts.get("annotation"):
        each += Decimal(entry.get(f"annotation_cost_per_page{batches}") or 0)
    return each * facts["pages"]


# --- Calls at random --------------------------------------------------------------------------------------------------


def calls_of(entry: Mapping[str, Any], by_tokens: bool, dice: random.Random, count: int) -> Iterator[Call]:
    """Calls of every size that the entry may be asked for; the ends of its steps are among them."""
    for _ in range(count):
        facts = dict(_region(entry, dice))
        at = MONDAY + timedelta(minutes=dice.randrange(7 * 24 * 60))
        if by_tokens:
            tier = dice.choice(["", "", *PRIORITIES])
            yield Call(facts | ({"service_tier": tier} if tier else {}), _tokens(entry, dice), at)
        else:
            yield Call(facts | _units(entry, dice), {}, at)


def _region(entry: Mapping[str, Any], dice: random.Random) -> Iterator[tuple[str, str]]:
    if dice.random() < 0.3:
        yield "data_residency", dice.choice(["eu", "us", "fedramp", "none"])
    if dice.random() < 0.2:
        yield "endpoint", dice.choice(["regional", "global"])


def _tokens(entry: Mapping[str, Any], dice: random.Random) -> dict[str, int]:
    ends = [1000 * int(step) for name in entry for step in STEP.findall(name)]
    ends += [int(item["range"][1]) for item in entry.get("tiered_pricing", ())]
    read = dice.choice([0, 1, dice.randrange(2000), dice.randrange(2_000_000)])
    if ends and dice.random() < 0.6:
        read = max(0, dice.choice(ends) + dice.choice([-1, 0, 1]))
    used = {"input": read, "output": dice.choice([0, 1, dice.randrange(100_000)])}
    for whole, parts in (("input", NAMES[1:3] + NAMES[4:6]), ("output", NAMES[7:])):
        left = used[whole]
        for part in dice.sample(parts, len(parts)):
            used[part] = dice.choice([0, dice.randint(0, left)])
            left -= used[part]
    used["cache_write_long"] = dice.randint(0, used["cache_write"])
    return used


def _units(entry: Mapping[str, Any], dice: random.Random) -> dict[str, Any]:
    mode = entry.get("mode")
    if mode == "video_generation":
        names = [name.rpartition("_")[2] for name in entry if name.startswith("output_cost_per_second_")]
        named = {"resolution": dice.choice([*names, "8k"])} if dice.random() < 0.9 else {}
        seconds = dice.choice([dice.randint(1, 30), round(dice.uniform(0.1, 30), 2)])
        return named | {
            "duration_s": seconds, "reference_images": dice.randint(0, 9), "input_video_s": dice.randint(0, 9),
        }  # fmt: skip
    if mode in ("image_generation", "image_edit"):
        names = [found[1] for name in entry if (found := SIZED.fullmatch(name))]
        size = f"{dice.randint(1, 4096)}x{dice.randint(1, 4096)}"
        sized = {"size": size}
        if names and ("output_cost_per_image" not in entry or dice.random() < 0.8):
            name = dice.choice(names)
            sized = {"size": name} if name.endswith("K") else {"size": size, "resolution": name}
        return sized | {"n": dice.randint(1, 10), "reference_images": dice.randint(0, 4)}
    if mode == "ocr":
        tier = {"service_tier": "batch"} if dice.random() < 0.4 else {}
        return tier | {"pages": dice.randint(0, 500), "annotation": dice.random() < 0.4}
    if "input_cost_per_character" in entry and "input_cost_per_query" not in entry:
        return {"characters": dice.randint(0, 100_000)}
    if "input_cost_per_second" in entry or "output_cost_per_second" in entry:
        return {"audio_s": round(dice.uniform(0, 10_000), 3)}
    return {}
