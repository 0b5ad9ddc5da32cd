"""LiteLLM's table as rules: what they come to, what is left out, what changed. The whole table where one is given."""

import json
import logging
import os
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from cli.pricelist.changes import Change, changes, continued
from cli.pricelist.importing import Imported, import_table
from cli.pricelist.table import TableError, fingerprint, read_table, resolved
from cli.pricelist.writing import text_of_rules
from services.cost_quote.domain.parsing import parse_rule
from services.cost_quote.domain.pricing import Priced, price
from services.cost_quote.domain.settling import Usage, settle
from services.routing.domain.catalog_file import read_file
from tests.unit.cli.price_oracle import Call, calls_of, worth

EXCERPT = Path(__file__).parents[2] / "cases/prices/litellm_excerpt.json"
TABLE = Path(os.environ.get("POINTSMAN_PRICE_TABLE") or EXCERPT)
CALLS = 40

log = logging.getLogger(__name__)


def imported(**entries: Any) -> Imported:
    """What becomes of these entries."""
    return import_table({name.replace("__", "/"): entry for name, entry in entries.items()})


def compared(data: bytes, dice: random.Random) -> tuple[int, int]:
    """(models, calls) whose price by our rule is that of the table, to the last digit; the first difference fails."""
    shown = {name: entry for name, entry in json.loads(data, parse_float=Decimal).items() if isinstance(entry, dict)}
    models = calls = 0
    for spec in import_table(read_table(data)).rules:
        entry = shown[spec["id"]]
        while "alias_of" in entry:
            entry = shown[entry["alias_of"]]
        if "volcengine_video_frames" in (entry.get("provider_specific_entry") or {}):
            spec = {name: part for name, part in spec.items() if name != "multipliers"}  # ratios are scaled by us
        rule = parse_rule({**spec, "until": None})
        for call in calls_of(entry, spec["billing_mode"] == "per_token", dice, CALLS):
            wanted = worth(entry, call)
            assert quoted(rule, call) == wanted, (spec["id"], call)
            assert settled(rule, call) == wanted, (spec["id"], call)
            calls += 1
        models += 1
    return models, calls


def quoted(rule: Any, call: Call) -> Decimal:
    """The quote for a call whose usage is known."""
    usage = {"usage": {f"{name}_tokens": count for name, count in call.used.items()}} if call.used else {}
    found = price(rule, {**call.facts, **usage}, call.at)
    assert isinstance(found, Priced), (rule.id, found)
    return found.amount


def settled(rule: Any, call: Call) -> Decimal:
    """What is booked for it."""
    usage = Usage(**{f"{name}_tokens": count for name, count in call.used.items()})
    found = settle(rule, call.facts, usage, call.at)
    assert isinstance(found, Priced), (rule.id, found)
    return found.amount


def test_quotes_are_the_tables_own() -> None:
    """COST-1, COST-3: for random calls of every imported model the quote, and what is booked, equal the table's own
    arithmetic exactly: of the excerpt, or of the whole table that `make prices TABLE=FILE` names."""
    models, calls = compared(TABLE.read_bytes(), random.Random(1))
    log.info("%d models, %d calls: every quote is the table's own", models, calls)
    assert calls == models * CALLS
    assert models >= (51 if TABLE == EXCERPT else 2_000)


def test_every_imported_rule_is_one_of_the_catalogue() -> None:
    """CAT-1: the catalogue takes what the import writes."""
    found = import_table(read_table(EXCERPT.read_bytes()))
    file = read_file(text_of_rules(found.rules, "0" * 64))
    assert file.faults == ()
    assert [item.id for item in file.declared] == [rule["id"] for rule in found.rules]


def test_the_second_of_a_video_by_tokens_is_the_published_one() -> None:
    """COST-3: 1280x720x24/1024 tokens at 46 CNY a million are 0.9936 CNY a second; at 7.0 that is the table's price."""
    spec = {
        "id": "seedance", "currency": "CNY", "billing_mode": "per_second", "rate": "46",
        "video_tokens": {"fps": 24, "frames": {"720p": {"16:9": "1280x720"}}},
    }  # fmt: skip
    found = price(parse_rule(spec), {"duration_s": 1, "resolution": "720p", "ratio": "16:9"})
    assert isinstance(found, Priced)
    assert (found.amount, found.kind) == (Decimal("0.9936"), "exact")
    [rule] = import_table(read_table(EXCERPT.read_bytes()), only="volcengine/doubao-seedance-2-0-260128").rules
    listed = price(parse_rule(rule), {"duration_s": 1, "resolution": "720p", "ratio": "16:9"})
    assert isinstance(listed, Priced)
    assert round(found.amount / Decimal("7.0"), 9) == listed.amount == Decimal("0.141942857")
    assert round(listed.amount, 4) == Decimal("0.1419")


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"mode": "chat"}, "no price of input tokens"),
        ({"mode": "chat", "input_cost_per_token": 1e-6}, "no price of output tokens"),
        ({"mode": "chat", "cost_per_second": 0.1, "input_cost_per_token": 0.0}, "bought by time"),
        ({"mode": "chat", "input_cost_per_token": 1e-6, "input_cost_per_request": 0.1}, "a fee for each request"),
        ({"mode": "image_generation"}, "no price of pictures"),
        ({"mode": "video_generation"}, "no price of seconds of video"),
        ({"mode": "ocr", "ocr_cost_per_credit": 0.1}, "no price of pages"),
        ({"mode": "search", "tiered_pricing": [{"max_results_range": [1, 2]}]}, "number of results"),
        ({"mode": "audio_transcription", "input_cost_per_second": 1, "output_cost_per_second": 2}, "two prices"),
        ({"alias_of": "gone"}, "alias of gone, which the table does not have"),
        ({"mode": "chat", "tiered_pricing": []}, "list of tiers is empty"),
        ({"mode": "chat", "tiered_pricing": [{"range": [5, 9], "input_cost_per_token": 1}]}, "gap or overlap at 0"),
        ({"mode": "chat", "tiered_pricing": [{"range": [0]}]}, "not by ranges"),
        (
            {"mode": "chat", "input_cost_per_token": 1, "off_peak_pricing": {"weekday_timezone": "Asia/Shanghai"}},
            "another time zone (Asia/Shanghai)",
        ),
        ({"mode": "chat", "input_cost_per_token": 1, "off_peak_pricing": {}}, "hours are not told"),
    ],
)
def test_what_is_not_stated_has_no_price(entry: dict[str, Any], reason: str) -> None:
    """COST-4: no rule, and the reason."""
    found = imported(x=entry)
    assert found.rules == []
    assert reason in found.unpriced["x"]


def test_a_name_that_is_no_id_is_told() -> None:
    """CAT-1: nothing is renamed in silence."""
    found = imported(**{"a*b": {"mode": "chat", "input_cost_per_token": 1, "output_cost_per_token": 1}})
    assert found.unpriced == {"a*b": "its name cannot be the id of a rule"}


def test_aliases_are_followed_and_circles_are_told() -> None:
    """COST-4: an alias has the price of what it stands for; one that leads back has none."""
    priced = {"mode": "chat", "input_cost_per_token": 2e-6, "output_cost_per_token": 4e-6}
    found = imported(a={"alias_of": "b"}, b={"alias_of": "c"}, c=priced, x={"alias_of": "y"}, y={"alias_of": "x"})
    assert [(rule["id"], rule["input_per_million"]) for rule in found.rules] == [("a", "2"), ("b", "2"), ("c", "2")]
    assert found.unpriced["x"] == "its aliases lead in a circle: x -> y -> x"
    assert resolved({"x": {"alias_of": "x"}}, "x") == "its aliases lead in a circle: x -> x"


def test_zero_is_imported_where_it_is_stated_and_told() -> None:
    """COST-4: zero and missing are different, and both are told."""
    found = imported(x={"mode": "chat", "input_cost_per_token": 0, "output_cost_per_token": 0.0})
    assert found.rules[0]["input_per_million"] == "0"
    assert found.warnings["x"] == ["the table states zero: free, or not known to it"]


def test_what_a_rule_leaves_out_is_told() -> None:
    """COST-4: add-ons, prices of another kind and rules in prose do not vanish."""
    entry = {
        "mode": "chat", "input_cost_per_token": 1e-6, "output_cost_per_token": 1e-6, "citation_cost_per_token": 2e-6,
        "search_context_cost_per_query": {"low": 0.01}, "file_search_cost_per_1k_calls": 0.0,
        "metadata": {"comment": "80 credits at least"},
    }  # fmt: skip
    assert imported(x=entry).warnings["x"] == [
        "left out: citation_cost_per_token",
        "left out: search_context_cost_per_query",
        "in prose: 80 credits at least",
    ]


def test_numbers_are_the_decimals_that_they_show() -> None:
    """COST-3: `Decimal(str(x))`, never the binary fraction."""
    entry = {"mode": "image_generation", "output_cost_per_image": 0.14353}
    assert imported(x=entry).rules[0]["rate"] == "0.14353"
    tiny = {"mode": "embedding", "input_cost_per_token": 2e-8}
    assert imported(x=tiny).rules[0]["input_per_million"] == "0.02"


def test_a_rule_names_its_source_its_content_and_its_last_day() -> None:
    """COST-3: equal prices have equal digits, other prices others; what is retired stops quoting."""
    entry = {
        "mode": "ocr", "ocr_cost_per_page": 0.004, "deprecation_date": "2026-12-01", "source": "https://example.com/p",
        "max_input_tokens": 5,
    }  # fmt: skip
    [rule] = imported(x=entry).rules
    assert (rule["until"], rule["source"]) == ("2026-12-01", "https://example.com/p")
    assert rule["source_hash"] == fingerprint({**entry, "max_input_tokens": 6})
    assert rule["source_hash"] != fingerprint({**entry, "ocr_cost_per_page": 0.005})


def test_an_off_peak_window_across_midnight_keeps_its_days() -> None:
    """COST-1: the table goes by the weekday of the moment; so does what is written."""
    block = {"input_cost_per_token": 1e-6, "windows": [{"hours_utc": "22:00-02:00", "weekdays": [1]}]}
    entry = {"mode": "chat", "input_cost_per_token": 2e-6, "output_cost_per_token": 0.0, "off_peak_pricing": block}
    [rule] = imported(x=entry).rules
    assert rule["tiers"][0]["hours"] == [
        {"from": "22:00", "to": "00:00", "days": ["mon"]}, {"from": "00:00", "to": "02:00", "days": ["mon"]},
    ]  # fmt: skip


def test_another_import_tells_what_changed() -> None:
    """COST-3: a changed price gets the next version and is told beyond the given share; an equal one keeps its own."""

    def table(**rates: float) -> list[dict[str, Any]]:
        return imported(**{n: {"mode": "image_edit", "output_cost_per_image": r} for n, r in rates.items()}).rules

    before = {rule["id"]: {**rule, "version": 3} for rule in table(same=1.0, little=1.0, much=1.0, gone=1.0, free=0.0)}
    now = table(same=1.0, little=1.04, much=1.06, new=1.0, free=0.1)
    assert {rule["id"]: rule["version"] for rule in continued(now, before)} == {
        "same": 3, "little": 4, "much": 4, "new": 1, "free": 4,
    }  # fmt: skip
    assert changes(now, before, Decimal("0.05")) == [
        Change("much", "changed", Decimal("0.06"), "1 -> 1.06"),
        Change("new", "new"),
        Change("free", "changed", Decimal("Infinity"), "0 -> 0.1"),
        Change("gone", "gone"),
    ]
    other = imported(same={"mode": "ocr", "ocr_cost_per_page": 1.0}).rules
    assert changes(other, {"same": before["same"]}, Decimal("0.05")) == [Change("same", "reshaped")]


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"a": 1}', b"\xff"])
def test_what_is_no_table_is_refused(data: bytes) -> None:
    """CAT-1: a file that is none says so."""
    with pytest.raises(TableError):
        read_table(data)
