"""The ledger: what was accepted at which price, what was refused, and how often each client token was posted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from services.studio.domain.jobs import ABANDONED, RUNNING

Row = Mapping[str, Any]


def view(submissions: Iterable[Row], posts: Iterable[Row]) -> dict[str, Any]:
    """The answer of GET /lab/ledger. Amounts are decimal strings; `posts.repeated` shows hidden retries."""
    accepted = list(submissions)
    received = list(posts)
    refused = [post for post in received if post["fate"] == "refused"]
    tokens = Counter(post["client_token"] for post in received if post["client_token"])
    return {
        "submissions": [_submission(row) for row in accepted],
        "refused": {
            "count": len(refused),
            "by_code": dict(Counter(post["code"] for post in refused)),
            "by_account": dict(Counter(post["account"] for post in refused)),
            "requests": [_refusal(post) for post in refused],
        },
        "posts": {
            "count": len(received),
            "by_client_token": dict(tokens),
            "repeated": {token: count for token, count in tokens.items() if count > 1},
            "replayed": sum(post["fate"] == "replayed" for post in received),
        },
        "totals": {
            "accepted": len(accepted),
            "by_status": dict(Counter(row["status"] for row in accepted)),
            "by_account": dict(Counter(row["account"] for row in accepted)),
            "would_charge": _sums(accepted, "would_charge"),
            "charged": _sums(accepted, "charged"),
        },
        "calls": _calls([row for row in accepted if row["provider_task_id"] is None]),
    }


def _calls(rows: list[Row]) -> dict[str, Any]:
    """Synchronous calls by kind, with the sum of what they used, and those whose caller hung up."""
    kinds = {}
    for kind in sorted({row["kind"] for row in rows}):
        ours = [row for row in rows if row["kind"] == kind]
        used: Counter[str] = Counter()
        for row in ours:
            used.update(_usage(row) or {})
        charged = _sums(ours, "charged")
        kinds[kind] = {"count": len(ours), "usage": dict(used), "charged": charged}
    return {
        "count": len(rows),
        "by_kind": kinds,
        "in_flight": sum(row["status"] == RUNNING for row in rows),
        "abandoned": sum(row["status"] == ABANDONED for row in rows),
    }


def _usage(row: Row) -> dict[str, int] | None:
    return json.loads(row["usage"]) if row["usage"] else None


def _submission(row: Row) -> dict[str, Any]:
    return {
        "id": row["id"],
        "account": row["account"],
        "model": row["model"],
        "at": stamp(row["at"]),
        "kind": row["kind"],
        "request_sha256": row["request_sha256"],
        "client_token": row["client_token"] or None,
        "safety_identifier": row["safety_identifier"] or None,
        "provider_task_id": row["provider_task_id"],
        "status": row["status"],
        "would_charge": {"currency": row["currency"], "amount": row["would_charge"]},
        "charged": {"currency": row["currency"], "amount": row["charged"] or "0.00"},
        "finished_at": stamp(row["finished_at"]),
        "usage": _usage(row),
    }


def _refusal(post: Row) -> dict[str, Any]:
    names = ("account", "path", "model", "client_token", "request_sha256", "status", "code")
    return {"at": stamp(post["at"]), **{name: post[name] for name in names}}


def _sums(rows: Iterable[Row], column: str) -> dict[str, str]:
    sums: dict[str, Decimal] = {}
    for row in rows:
        if row[column] is not None:
            sums[row["currency"]] = sums.get(row["currency"], Decimal(0)) + Decimal(row[column])
    return {currency: f"{total:f}" for currency, total in sorted(sums.items())}


def stamp(seconds: float | None) -> str | None:
    """RFC 3339 in UTC, or None."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
