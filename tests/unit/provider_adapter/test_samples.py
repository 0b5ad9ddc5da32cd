"""The corpus of real and documented replies, and variations of them in other words, nesting, languages and phases.

What the corpus doubts itself is not held against the judgement; docs/decisions tells where it disagrees and why. The
variations were written and labelled before the rules were held against them; each names the `rule` that it tries. Those
of the `outsider` were composed by somebody who had not seen the rules.
"""

import json
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from libs.faults.fault import Fault
from services.provider_adapter.adapters.registry import adapter_of
from services.provider_adapter.app.classify import ClassifyFailure
from services.provider_adapter.domain.exchange import Reply
from tests.support.worlds import SteeredClock

CASES = Path(__file__).parents[2] / "cases"


def lines_of(name: str) -> list[dict[str, Any]]:
    """The samples of one file."""
    return [json.loads(line) for line in (CASES / name).read_text(encoding="utf-8").splitlines()]


SAMPLES = lines_of("provider_errors.jsonl")
VARIATIONS = lines_of("provider_variations.jsonl")
CERTAIN = [sample for sample in SAMPLES if not sample.get("doubtful")]
WHERE = re.compile(r"body\b.*|header\.[a-z-]+|status \d+.*|transport .+|state '.*'|the (job|record) .+")
NOW = datetime(2026, 11, 30, tzinfo=UTC)


def judged(sample: dict[str, Any], adapter: str = "") -> Fault:
    """The judgement by the way that ClassifyFailure takes."""
    body = sample["body"]
    raw = b"" if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()
    headers = {name.lower(): str(value) for name, value in sample["headers"].items()}
    reply = Reply(sample["http_status"] or 0, headers, raw, sample["transport_error"] or "")
    return ClassifyFailure(SteeredClock(NOW))(
        adapter or adapter_of(sample["provider"]), sample["api"], sample["phase"], reply
    )


def assert_as_labelled(sample: dict[str, Any], fault: Fault) -> None:
    """Category, scope and retryable are the labels; the evidence says which clue it was, and where."""
    expected = sample["expected"]
    assert (fault.category.value, fault.scope.value, fault.retryable) == (
        expected["category"],
        expected["scope"],
        expected["retryable"],
    ), f"{fault.code} by {fault.metadata}: {sample['why']}"
    assert WHERE.fullmatch(fault.metadata["evidence"]), fault.metadata


@pytest.mark.parametrize("sample", CERTAIN, ids=lambda sample: sample["id"])
def test_a_certain_sample(sample: dict[str, Any]) -> None:
    """ERR-1 ERR-1a: every certain sample is classified as labelled, by its provider's adapter and without one."""
    for adapter in {adapter_of(sample["provider"]), "generic"}:
        assert_as_labelled(sample, judged(sample, adapter))


@pytest.mark.parametrize("sample", VARIATIONS, ids=lambda sample: f"{sample['id']}-{sample['rule']}")
def test_a_variation(sample: dict[str, Any]) -> None:
    """ERR-1 ERR-1a: general rules: other words, languages, nesting, codes, headers, pages, phases, providers."""
    assert_as_labelled(sample, judged(sample))


def test_every_kind_of_rule_is_tried() -> None:
    """ERR-1: no kind of evidence goes untried, and every category is among the answers of the variations."""
    counts = Counter(sample["rule"] for sample in VARIATIONS)
    assert counts.keys() == {
        *(f"wording-{of}" for of in ("content", "person", "request", "supply", "capacity", "channel")),
        *("wording-chinese", "wording-languages", "nesting", "codes", "headers", "pages", "providers", "documented"),
        *("poll", "stream", "transport", "unproven", "lookalike", "outsider"),
    }
    assert min(counts.values()) >= 5
    assert len({tuple(sample["expected"].items()) for sample in VARIATIONS}) == 6


def test_no_doubt_is_turned_into_a_second_submission() -> None:
    """ERR-1a: of all samples that prove nothing about a submission, the doubtful too, none is free to be sent again."""
    unproven = [s for s in SAMPLES if s["expected"]["category"] == "unknown" and s["phase"] == "submit"]
    freed = [s["id"] for s in unproven if judged(s).retryable]
    assert freed == []


def test_doubtful_samples_are_mostly_agreed_with() -> None:
    """ERR-1: a ratchet. Raise the number when more agree; it never falls."""
    doubtful = [sample for sample in SAMPLES if sample.get("doubtful")]
    agreed = 0
    for sample in doubtful:
        fault, expected = judged(sample), sample["expected"]
        agreed += (fault.category.value, fault.scope.value) == (expected["category"], expected["scope"])
    assert agreed >= 151
