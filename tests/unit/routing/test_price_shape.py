"""The structure of price rules: what the catalogue takes, cost_quote understands; what is wrong has its path."""

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from services.cost_quote.domain.parsing import parse_rule
from services.routing.domain.catalog_objects import read_price
from services.routing.domain.catalog_text import load
from services.routing.domain.price_shape import Span, span_of
from services.routing.domain.spec_reader import SpecReader

GUIDE = Path(__file__).parents[3] / "docs/guides/catalog.md"
BLOCKS = re.findall(r"```yaml\n(- .*?)```", GUIDE.read_text(), re.S)


def documented() -> list[dict[str, Any]]:
    """Every price rule of the guide."""
    entries = [f"prices:\n{block}" for block in BLOCKS]
    return [rule for text in entries for rule in load(text)["prices"]]


RULES = documented()


def faults_of(spec: dict[str, Any]) -> list[str]:
    """What the catalogue says of it."""
    faults: list[tuple[str, str]] = []
    reader = SpecReader(spec, "", faults)
    read_price(reader)
    reader.close()
    return [path for path, _ in faults]


@pytest.mark.parametrize("rule", RULES, ids=[rule["id"] for rule in RULES])
def test_every_rule_of_the_guide_is_one(rule: dict[str, Any]) -> None:
    """COST-1, CAT-1: the catalogue takes each example, and cost_quote reads it."""
    assert faults_of(rule) == []
    assert parse_rule(rule).id == rule["id"]
    assert span_of(rule, rule["billing_mode"]) is not None


def test_the_guide_shows_every_part() -> None:
    """COST-1: no part of the language is without its example."""
    shown = {name for rule in RULES for name in rule}
    assert {
        "rate", "rates", "table", "per", "round_up_to", "most_units", "quantity", "unit", "bands", "surcharges",
        "minimum", "credits", "multipliers", "until", "source", "tiers", "image_tokens", "max_output_tokens",
        "video_tokens", "times",
    } <= shown  # fmt: skip


VIDEO = {"fps": 24, "frames": {"720p": {"16:9": "1280x720"}}}


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"rates": [{"rate": "1"}]}, "rates[0].when"),
        ({"rates": [{"rate": "1", "when": {"n": {"more": 1}}}]}, "rates[0].when.n.more"),
        ({"rates": [{"rate": "1", "when": {"n": {}}}]}, "rates[0].when.n"),
        ({"rates": [{"rate": "1", "when": {"n": []}}]}, "rates[0].when.n"),
        ({"rates": [{"rate": "1", "when": {"n": [[1]]}}]}, "rates[0].when.n"),
        ({"rates": [{"rate": "1", "when": {"n": {"from": "1"}}}]}, "rates[0].when.n.from"),
        ({"rates": [{"rate": "1", "hours": [{"from": "24:00", "to": "01:00"}]}]}, "rates[0].hours[0].from"),
        (
            {"rates": [{"rate": "1", "hours": {"from": "00:00", "to": "01:00", "days": ["x"]}}]},
            "rates[0].hours.days[0]",
        ),
        ({"table": {"rates": {"a": "1"}}}, "table.by"),
        ({"table": {"by": ["ratio"], "rates": {"1:1": 0.5}}}, "table.rates.1:1"),
        ({"table": {"by": ["ratio", "n"], "rates": {"1:1": "1"}}}, "table.rates.1:1"),
        ({"per": 0}, "per"),
        ({"round_up_to": "x"}, "round_up_to"),
        ({"most_units": 0.5}, "most_units"),
        ({"surcharges": [{"rate": "1"}]}, "surcharges[0].field"),
        ({"surcharges": [{"field": "n", "rate": "1", "fre": 2}]}, "surcharges[0].fre"),
        ({"multipliers": [{"when": {"n": 1}}]}, "multipliers[0].factor"),
        ({"credits": {}}, "credits.price"),
        ({"until": "2026-02-30"}, "until"),
        ({"until": 2026}, "until"),
        ({"unit": "pixel"}, "unit"),
        ({"video_tokens": {**VIDEO, "fps": None}}, "video_tokens.fps"),
        ({"video_tokens": {"fps": 24, "frames": {}}}, "video_tokens.frames"),
        ({"video_tokens": {"fps": 24, "frames": {"720p": {"16:9": "big"}}}}, "video_tokens.frames.720p.16:9"),
        ({"video_tokens": {**VIDEO, "input_video": {"floor_tokens": 0.5}}}, "video_tokens.input_video.floor_tokens"),
        ({"video_tokens": {**VIDEO, "fps2": 1}}, "video_tokens.fps2"),
        ({"image_tokens": {}}, "image_tokens"),
    ],
)
def test_what_is_wrong_is_named_by_its_path(change: dict[str, Any], path: str) -> None:
    """CAT-1: every part of a rule is checked."""
    assert path in faults_of({"id": "r", "currency": "CNY", "billing_mode": "per_second", "rate": "1", **change})


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"image_tokens": {"1x1": {"low": "many"}}}, "image_tokens.1x1.low"),
        ({"image_tokens": {"1x1": 0.5}}, "image_tokens.1x1"),
        ({"max_output_tokens": "x"}, "max_output_tokens"),
        ({"reasoning_per_million": 0.5}, "reasoning_per_million"),
        ({"tiers": [{"input_per_million": "1"}]}, "tiers"),
    ],
)
def test_what_is_wrong_with_tokens_is_named(change: dict[str, Any], path: str) -> None:
    """CAT-1: the same of tokens."""
    assert path in faults_of(
        {"id": "r", "currency": "CNY", "billing_mode": "per_token", "input_per_million": "1", **change}
    )


def test_the_range_of_prices_is_of_units() -> None:
    """EDG-1: what a caller is told of a price is for one second, image, page or million tokens, in money."""
    spans = {rule["id"]: span_of(rule, rule["billing_mode"]) for rule in RULES}
    assert spans["seconds"] == Span(Decimal("0.70"), Decimal("2.80"), "second")
    assert spans["pictures"] == Span(Decimal("0.042"), Decimal("0.25"), "image")
    assert spans["speech"] == Span(Decimal("0.0001"), Decimal("0.0001"), "character")
    assert spans["by-credits"] == Span(Decimal("0.3"), Decimal("0.3"), "second")
    assert spans["tiers-of-service"] == Span(Decimal("0.16"), Decimal("0.4"), "second")
    assert spans["video-tokens"] == Span(Decimal("0.2688"), Decimal("2.4786"), "second")
