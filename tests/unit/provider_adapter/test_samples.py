"""The corpus of real and documented replies. What it doubts itself is not held against the judgement."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from libs.faults.fault import Fault
from services.provider_adapter.app.classify import ClassifyFailure
from services.provider_adapter.domain.exchange import Reply
from tests.support.worlds import SteeredClock

CORPUS = Path(__file__).parents[2] / "cases" / "provider_errors.jsonl"
SAMPLES = [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]
CERTAIN = [sample for sample in SAMPLES if not sample.get("doubtful")]
ADAPTER_OF = {"openai": "openai", "volcengine-ark": "ark", "byteplus-modelark": "ark", "kling": "kling"}
NOW = datetime(2026, 11, 30, tzinfo=UTC)


def judged(sample: dict[str, Any]) -> Fault:
    """The judgement by the way that ClassifyFailure takes."""
    body = sample["body"]
    raw = b"" if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()
    headers = {name.lower(): str(value) for name, value in sample["headers"].items()}
    reply = Reply(sample["http_status"] or 0, headers, raw, sample["transport_error"] or "")
    adapter = ADAPTER_OF.get(sample["provider"], "generic")
    return ClassifyFailure(SteeredClock(NOW))(adapter, sample["api"], sample["phase"], reply)


@pytest.mark.parametrize("sample", CERTAIN, ids=lambda sample: sample["id"])
def test_a_certain_sample(sample: dict[str, Any]) -> None:
    """ERR-1 ERR-1a: category, scope and retryable are those of the table of ERR, and the evidence is named."""
    fault = judged(sample)
    expected = sample["expected"]
    assert (fault.category.value, fault.scope.value, fault.retryable) == (
        expected["category"],
        expected["scope"],
        expected["retryable"],
    ), f"{fault.code} by {fault.metadata}: {sample['why']}"
    assert fault.metadata["evidence"]


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
    assert agreed >= 142
