"""A Run as one JSON document and back: what its row keeps beside the columns that are searched."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from libs.kernel.canonical import plain
from libs.kernel.money import Money
from services.runs.domain.run import Artifact, Failure, Node, NodeState, Order, Result, Run, RunState, Usage


def run_to_document(run: Run) -> dict[str, Any]:
    """JSON values only; amounts as decimal text, times in RFC 3339."""
    document: dict[str, Any] = plain(run)
    return document


def run_from_document(document: Mapping[str, Any]) -> Run:
    """The inverse of `run_to_document`."""
    return Run(
        **{
            **document,
            "state": RunState(document["state"]),
            "order": _order(document["order"]),
            "node": _node(document["node"]),
            "created_at": _required_time(document["created_at"]),
            "usage": Usage(**{**document["usage"], "cost": _money(document["usage"]["cost"])}),
            "started_at": _time(document["started_at"]),
            "finished_at": _time(document["finished_at"]),
            "failure": _failure(document["failure"]),
            "result": _result(document["result"]),
        }
    )


def _required_time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _money(value: Mapping[str, str] | None) -> Money | None:
    return Money(value["currency"], Decimal(value["amount"])) if value else None


def _failure(value: Mapping[str, Any] | None) -> Failure | None:
    return Failure(**value) if value else None


def _artifacts(values: list[Mapping[str, Any]]) -> tuple[Artifact, ...]:
    return tuple(Artifact(**value) for value in values)


def _order(value: Mapping[str, Any]) -> Order:
    return Order(**{**value, "deadline": _time(value["deadline"])})


def _node(value: Mapping[str, Any]) -> Node:
    return Node(
        **{
            **value,
            "state": NodeState(value["state"]),
            "artifacts": _artifacts(value["artifacts"]),
            "failure": _failure(value["failure"]),
        }
    )


def _result(value: Mapping[str, Any] | None) -> Result | None:
    if not value:
        return None
    lists = {"artifacts": _artifacts(value["artifacts"]), "dropped_inputs": tuple(value["dropped_inputs"])}
    return Result(**{**value, **lists})
