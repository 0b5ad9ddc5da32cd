"""What people decide: on a review, read from a request body, and about a Run under way (HUMAN-2)."""

import re
from dataclasses import dataclass, field
from typing import Any

from services.edge.domain.json_values import Reader
from services.edge.domain.orders import INPUT, Material, materials_within

DECISIONS = ("approve", "reject", "reroute", "change_input", "raise_budget", "waive", "stop")
AMOUNT = re.compile(r"\d{1,12}(\.\d{1,9})?", re.ASCII)
CURRENCY = re.compile(r"[A-Z]{3}", re.ASCII)
COUNTS = ("attempts", "review_minutes")
LARGEST_COUNT = 10**9


@dataclass(frozen=True, slots=True)
class Verdict:
    """A decision. `budget` is (currency, amount) or None, a count 0 where it is not said; `subject_hash` "" = whatever
    the review is about."""

    decision: str
    comment: str = ""
    input: dict[str, Any] = field(default_factory=dict)
    supply: str = ""
    budget: tuple[str, str] | None = None
    subject_hash: str = ""
    attempts: int = 0
    review_minutes: int = 0


@dataclass(frozen=True, slots=True)
class Redrive:
    """What is to run again; `node` "" = everything that failed. With `preview` nothing does."""

    node: str = ""
    reason: str = ""
    input: dict[str, Any] | None = None
    supply: str = ""
    preview: bool = False


@dataclass(frozen=True, slots=True)
class Command:
    """Who asks for something, by the id of the key, and the id that makes a repeat harmless ("" = it has none)."""

    who: str
    id: str = ""


def read_verdict(body: Reader) -> tuple[Verdict, tuple[Material, ...]]:
    """(the decision, the materials that its input holds). Reads and finishes the body. Fault validation_failed."""
    budget, attempts, review_minutes = _limits(body)
    verdict = Verdict(
        decision=body.choice("decision", DECISIONS, required=True),
        comment=body.text("comment", longest=4096),
        input=body.object("input"),
        supply=body.text("supply", longest=200),
        budget=budget,
        subject_hash=body.text("subject_hash", longest=64),
        attempts=attempts,
        review_minutes=review_minutes,
    )
    materials = tuple(materials_within(verdict.input, INPUT, body.errors))
    body.finish()
    return verdict, materials


def _limits(body: Reader) -> tuple[tuple[str, str] | None, int, int]:
    """(money as (currency, amount) or None, attempts, minutes of reviewers): one of them, where `budget` is there."""
    if not body.has("budget"):
        return None, 0, 0
    limit = body.nested("budget")
    counts = [limit.whole(name, 1, LARGEST_COUNT) or 0 if limit.has(name) else 0 for name in COUNTS]
    money = _money(limit) if not any(limit.has(name) for name in COUNTS) else None
    limit.close()
    return money, counts[0], counts[1]


def _money(limit: Reader) -> tuple[str, str]:
    currency, amount = limit.text("currency", required=True), limit.text("amount", required=True)
    if currency and not CURRENCY.fullmatch(currency):
        limit.refuse("currency", "must be three capital letters, such as CNY")
    if amount and not AMOUNT.fullmatch(amount):
        limit.refuse("amount", "must be a decimal text, such as 250.00")
    return currency, amount
