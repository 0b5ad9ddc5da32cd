"""Prices by seconds, pictures, pixels, characters, pages and requests."""

from decimal import ROUND_CEILING, Decimal
from typing import Any

from cli.pricelist.table import Entry, text_of
from cli.pricelist.tokens import NoPrice

FACTOR_DIGITS = Decimal(1).scaleb(-9)


def video_rule(entry: Entry) -> dict[str, Any]:
    """Seconds of video by resolution, pictures that are read beyond a free number, seconds of input video."""
    plain = entry.price("output_cost_per_second")
    other = entry.price("output_cost_per_video_per_second")
    rates = [
        {"when": {"resolution": found[1].lower()}, "rate": _text(entry.price(found[0]))}
        for found in entry.matching(r"output_cost_per_second_(\d+[pk])")
    ]
    rule = _rated("per_second", plain if plain is not None else other, rates, "seconds of video")
    surcharges = []
    image, video = entry.price("input_cost_per_image"), entry.price("input_cost_per_video_per_second")
    specific = entry.fields.get("provider_specific_entry") or {}
    if image:
        free = specific.get("minimax_free_input_images", 0)
        surcharges.append({"field": "reference_images", "free": int(free), "rate": text_of(image)})
    if video:
        surcharges.append({"field": "input_video_s", "rate": text_of(video)})
    if surcharges:
        rule["surcharges"] = surcharges
    frames = specific.get("volcengine_video_frames")
    if isinstance(frames, dict):
        rule["multipliers"] = _frame_factors(frames)
    return rule


def _frame_factors(frames: dict[str, Any]) -> list[dict[str, Any]]:
    """The rates are those of 16:9; other ratios have other numbers of pixels, hence of tokens."""
    factors = []
    for resolution, by_ratio in frames.items():
        wide = _pixels(by_ratio.get("16:9", ""))
        for ratio, size in by_ratio.items():
            if wide and ratio != "16:9" and _pixels(size) != wide:
                factor = (Decimal(_pixels(size)) / wide).quantize(FACTOR_DIGITS, ROUND_CEILING)
                factors.append({"when": {"resolution": resolution, "ratio": ratio}, "factor": text_of(factor)})
    return factors


def _pixels(size: str) -> int:
    width, _, height = str(size).partition("x")
    return int(width) * int(height) if width.isdecimal() and height.isdecimal() else 0


def picture_rule(entry: Entry) -> dict[str, Any]:
    """Pictures at a price each, by size where there are such prices; else by pixels."""
    plain = entry.price("output_cost_per_image")
    rates = [
        {"when": _size(found[1]), "rate": _text(entry.price(found[0]))}
        for found in entry.matching(r"output_cost_per_image_(\d[\d.]*K?)")
    ]
    if plain is None and not rates:
        made = entry.price("input_cost_per_image")
        if made is None:
            return _pixel_rule(entry)
        entry.price("input_cost_per_pixel")
        entry.price("output_cost_per_pixel")
        return _rated("per_image", made, [], "pictures")  # older entries state the price of a picture as input
    rule = _rated("per_image", plain, rates, "pictures")
    read = entry.price("input_cost_per_image")
    if read:
        rule["surcharges"] = [{"field": "reference_images", "rate": text_of(read)}]
    return rule


def _size(name: str) -> dict[str, Any]:
    return {"size": [name, name.lower()]} if name.endswith("K") else {"resolution": name}


def _pixel_rule(entry: Entry) -> dict[str, Any]:
    read, made = entry.price("input_cost_per_pixel"), entry.price("output_cost_per_pixel")
    if read is None and made is None:
        raise NoPrice("the table states no price of pictures")
    rate = (read or Decimal(0)) + (made or Decimal(0))
    return {"billing_mode": "per_image", "unit": "pixel", "rate": text_of(rate)}


def sound_rule(entry: Entry) -> dict[str, Any]:
    """Seconds of sound that is read. Where input and output are both stated they are one price told twice."""
    rate = entry.price("input_cost_per_second")
    made = entry.price("output_cost_per_second")
    if rate and made and rate != made:
        raise NoPrice("seconds read and seconds made have two prices")
    rule = _rated("per_second", made or rate, [], "seconds of sound")
    return {**rule, "quantity": "audio_s"}


def speech_rule(entry: Entry) -> dict[str, Any]:
    """Characters that are spoken."""
    return _rated("per_character", entry.price("input_cost_per_character"), [], "characters")


def page_rule(entry: Entry) -> dict[str, Any]:
    """Pages that are read, with annotations where they are asked for, also in batches."""
    page, note = entry.price("ocr_cost_per_page"), entry.price("annotation_cost_per_page")
    batch, batch_note = entry.price("ocr_cost_per_page_batches"), entry.price("annotation_cost_per_page_batches")
    rates = []
    for rate, more, when in ((batch, batch_note, {"service_tier": "batch"}), (page, note, {})):
        if rate is None:
            continue
        if more is not None:
            rates.append({"when": {**when, "annotation": True}, "rate": text_of(rate + more)})
        if when:
            rates.append({"when": when, "rate": text_of(rate)})
    return _rated("per_page", page, rates, "pages")


def request_rule(entry: Entry) -> dict[str, Any]:
    """One price for a query."""
    if entry.anything("tiered_pricing") is not None:
        raise NoPrice("its price goes by the number of results, which is no fact of a request")
    return _rated("per_request", entry.price("input_cost_per_query"), [], "queries")


def _rated(mode: str, rate: Decimal | None, rates: list[dict[str, Any]], of: str) -> dict[str, Any]:
    if rate is None and not rates:
        raise NoPrice(f"the table states no price of {of}")
    return {
        "billing_mode": mode,
        **({} if rate is None else {"rate": text_of(rate)}),
        **({"rates": rates} if rates else {}),
    }


def _text(amount: Decimal | None) -> str:
    if amount is None:
        raise NoPrice("a price is no number")
    return text_of(amount)
