"""Parts of a price rule that several billing modes share, checked for their structure."""

import re
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from services.routing.domain.spec_reader import SpecReader, amount_fault

ZERO = Decimal(0)
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
BOUNDS = ("from", "above", "to", "below")
TIME_OF_DAY = re.compile(r"([01]\d|2[0-3]):[0-5]\d")
DAY = re.compile(r"[12]\d{3}-\d{2}-\d{2}")
PIXELS = re.compile(r"[1-9]\d{0,5}x[1-9]\d{0,5}")


def required_amount(reader: SpecReader, name: str) -> None:
    """An amount that must be there."""
    if not reader.has(name):
        reader.anything(name)
        reader.fault(name, "is required")
        return
    reader.amount(name, ZERO)


def check_condition(reader: SpecReader, needed: bool = False) -> None:
    """`when` and `hours` of an entry; with `needed` one of them must be there."""
    when = reader.nested("when")
    if when is not None:
        for name, wanted in when.value.items():
            _check_wanted(when, str(name), wanted)
    hours = reader.anything("hours")
    windows = hours if isinstance(hours, list) else [] if hours is None else [hours]
    for index, value in enumerate(windows):
        place = f"{reader.at('hours')}[{index}]" if isinstance(hours, list) else reader.at("hours")
        _check_window(SpecReader(value, place, reader.faults))
    if needed and not windows and (when is None or not when.value):
        reader.fault("when", "must name at least one field and its value")


def _check_wanted(when: SpecReader, name: str, wanted: Any) -> None:
    """A value, a list of values, or bounds."""
    if isinstance(wanted, Mapping):
        bounds = SpecReader(wanted, when.at(name), when.faults)
        bounds.flag("given", True)
        if isinstance(bounds.anything("not"), (dict, list)):
            bounds.fault("not", "must be one value")
        for bound in BOUNDS:
            bounds.number(bound, 0.0, low=-1e15, high=1e15)
        bounds.close()
        if not wanted:
            when.fault(name, f"must be a value, a list of values, or some of given, not, {', '.join(BOUNDS)}")
    elif isinstance(wanted, list) and not wanted:
        when.fault(name, "must name at least one value")
    elif isinstance(wanted, list) and any(isinstance(item, (dict, list)) for item in wanted):
        when.fault(name, "must be a list of plain values")


def _check_window(reader: SpecReader) -> None:
    for name in ("from", "to"):
        value = reader.anything(name)
        if not isinstance(value, str) or not TIME_OF_DAY.fullmatch(value):
            reader.fault(name, 'must be a time of day in UTC, for example "16:30"')
    for index, day in enumerate(reader.texts("days")):
        if day not in DAYS:
            reader.fault(f"days[{index}]", f"must be one of {', '.join(DAYS)}")
    reader.close()


def check_rates(reader: SpecReader) -> bool:
    """`rate`, `rates` and `table`; whether any of them is there."""
    reader.amount("rate", ZERO)
    rates = reader.items("rates")
    for item in rates:
        required_amount(item, "rate")
        check_condition(item, needed=True)
        item.close()
    table = reader.nested("table")
    if table is not None:
        names = table.texts("by")
        if not names:
            table.fault("by", "must name the facts that the table goes by, for example [resolution, ratio]")
        _check_table(table, "rates", table.anything("rates"), names)
        table.close()
    return reader.has("rate") or bool(rates) or table is not None


def _check_table(table: SpecReader, place: str, value: Any, names: Sequence[str]) -> None:
    if not names:
        fault = "is required" if value is None else amount_fault(value)
        if fault:
            table.fault(place, fault)
    elif not isinstance(value, Mapping) or not value:
        table.fault(place, f"must be a mapping by {names[0]}")
    else:
        for key, part in value.items():
            _check_table(table, f"{place}.{key}", part, names[1:])


def check_total(reader: SpecReader) -> None:
    """What is done to a price once its units are charged."""
    reader.amount("minimum", ZERO)
    reader.text("times", "")
    for item in reader.items("surcharges"):
        item.text("field")
        required_amount(item, "rate")
        item.amount("free", ZERO)
        item.amount("most", ZERO)
        check_condition(item)
        item.close()
    for item in reader.items("multipliers"):
        required_amount(item, "factor")
        check_condition(item)
        item.close()
    credits = reader.nested("credits")
    if credits is not None:
        required_amount(credits, "price")
        credits.flag("whole", True)
        credits.close()
    check_day(reader, "until")
    for name in ("source", "source_hash", "note"):
        reader.text(name, "")


def check_day(reader: SpecReader, name: str) -> None:
    """A day, as text."""
    value = reader.anything(name)
    if value is not None and not _is_day(value):
        reader.fault(name, 'must be a day, for example "2026-12-01", with the quotes')


def _is_day(value: Any) -> bool:
    if not isinstance(value, str) or not DAY.fullmatch(value):
        return False
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return True


def check_video_tokens(reader: SpecReader) -> None:
    """Pixel tables, frames a second, seconds of input video."""
    required_amount(reader, "fps")
    frames = reader.anything("frames")
    if not isinstance(frames, Mapping) or not frames:
        reader.fault("frames", 'must be pixels by resolution and ratio: {720p: {"16:9": 1280x720}}')
    else:
        for resolution, by_ratio in frames.items():
            _check_frames(reader, f"frames.{resolution}", by_ratio)
    for name in ("default_resolution", "default_ratio"):
        reader.text(name, "")
    given = reader.nested("input_video")
    if given is not None:
        given.text("field", "")
        given.text("given", "")
        given.amount("most", ZERO)
        floor = given.anything("floor_tokens")
        floors = floor if isinstance(floor, Mapping) else {} if floor is None else {"": floor}
        for name, value in floors.items():
            if fault := amount_fault(value):
                given.fault(f"floor_tokens.{name}".rstrip("."), fault)
        given.close()
    reader.close()


def _check_frames(reader: SpecReader, place: str, by_ratio: Any) -> None:
    if not isinstance(by_ratio, Mapping) or not by_ratio:
        reader.fault(place, 'must be pixels by ratio: {"16:9": 1280x720}')
        return
    for ratio, size in by_ratio.items():
        if not isinstance(size, str) or not PIXELS.fullmatch(size):
            reader.fault(f"{place}.{ratio}", "must be WIDTHxHEIGHT in pixels, for example 1280x720")


def check_image_tokens(reader: SpecReader) -> None:
    """Tokens by size, or by size and quality."""
    value = reader.anything("image_tokens")
    if value is None:
        return
    if not isinstance(value, Mapping) or not value:
        reader.fault("image_tokens", "must be tokens by size and quality: {1024x1024: {low: 272}}")
        return
    for size, by_quality in value.items():
        rows = by_quality if isinstance(by_quality, Mapping) else {"": by_quality}
        for quality, count in rows.items():
            if isinstance(count, bool) or not isinstance(count, int) or count < 0:
                reader.fault(f"image_tokens.{size}.{quality}".rstrip("."), "must be a whole number of tokens")
