"""What a person decides on a review, read from a request body (HUMAN-2)."""

import re
from dataclasses import dataclass, field
from typing import Any

from services.edge.domain.json_values import Reader

DECISIONS = ("approve", "reject", "reroute", "change_input", "raise_budget", "waive", "stop")
AMOUNT = re.compile(r"\d{1,12}(\.\d{1,9})?", re.ASCII)
CURRENCY = re.compile(r"[A-Z]{3}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A decision. `budget` is (currency, amount) or None; `subject_hash` "" = whatever the review is about."""

    decision: str
    comment: str = ""
    input: dict[str, Any] = field(default_factory=dict)
    supply: str = ""
    budget: tuple[str, str] | None = None
    subject_hash: str = ""


def read_verdict(body: Reader) -> Verdict:
    """Reads and finishes the body. Fault validation_failed."""
    verdict = Verdict(
        decision=body.choice("decision", DECISIONS, required=True),
        comment=body.text("comment", longest=4096),
        input=body.object("input"),
        supply=body.text("supply", longest=200),
        budget=_budget(body),
        subject_hash=body.text("subject_hash", longest=64),
    )
    body.finish()
    return verdict


def _budget(body: Reader) -> tuple[str, str] | None:
    if not body.has("budget"):
        return None
    limit = body.nested("budget")
    currency, amount = limit.text("currency", required=True), limit.text("amount", required=True)
    if currency and not CURRENCY.fullmatch(currency):
        limit.refuse("currency", "must be three capital letters, such as CNY")
    if amount and not AMOUNT.fullmatch(amount):
        limit.refuse("amount", "must be a decimal text, such as 250.00")
    limit.close()
    return currency, amount
