"""`pointsman budget` against a server in words."""

import json
from typing import Any

from cli.commands.budget import budget
from cli.commands.doctor import doctor
from tests.unit.cli.fake_server import FakeServer, invoke, problem

AT = "/v1/operator/budgets"


def amounts(cost: str, attempts: int = 0) -> dict[str, Any]:
    """As the server says them."""
    return {"cost": {"currency": "CNY", "amount": cost}, "attempts": attempts, "review_minutes": 0}


def a_budget(budget_id: str, parent: str | None = None, **more: Any) -> dict[str, Any]:
    """A budget of 20.00, 3.00 of it spent and 9.00 held."""
    limits = {"cost": {"currency": "CNY", "amount": "20.00"}, "attempts": 5, "review_minutes": None}
    return {
        "id": budget_id, "parent": parent, "level": "shot", "tenant": None, "value_class": "hero", "currency": "CNY",
        "hard": limits, "soft": {"cost": None, "attempts": None, "review_minutes": None}, "spent": amounts("3.00", 1),
        "held": amounts("9.00", 2), "deadline_at": None, "soft_limit_at": None, "refused_at": "2026-01-01T00:00:00Z",
        "created_at": "2026-01-01T00:00:00Z", "revision": 1, **more,
    }  # fmt: skip


def test_budgets_are_listed_as_the_tree_that_they_are() -> None:
    """OPS-8, COST-9: a child stands below its parent, whatever was made in between."""
    budgets = [a_budget("p"), a_budget("q"), a_budget("c", "p"), a_budget("orphan", "elsewhere")]
    said = invoke(budget, FakeServer({AT: {"budgets": budgets, "next_page_token": ""}}), "list")
    assert said.exit_code == 0
    ids = [line.split("│")[1].rstrip() for line in said.output.splitlines() if line.startswith("│")]
    assert ids == [" p", "   c", " q", " orphan"]
    assert "3 of 5" in said.output


def test_a_budget_is_raised_by_what_is_named_alone() -> None:
    """COST-10, OPS-8: limits that no flag names are not sent, the id is one part of the path, a reason is due."""
    path = f"{AT}/ep%2F1/limits"
    server = FakeServer({path: a_budget("ep/1")})
    said = invoke(budget, server, "raise", "ep/1", "--cost", "30.00", "--reason", "Ann: more takes", "--json")
    assert (said.exit_code, json.loads(said.output)["id"]) == (0, "ep/1")
    assert server.asked == [("POST", path, {"reason": "Ann: more takes", "hard": {"cost": "30.00"}})]
    assert invoke(budget, server, "raise", "ep/1", "--cost", "30.00").exit_code == 2
    soft = ("--review-minutes", "120", "--soft-review-minutes", "90", "--soft-attempts", "0")
    assert invoke(budget, server, "raise", "ep/1", *soft, "--reason", "Ann").exit_code == 0
    limits = {"hard": {"review_minutes": 120}, "soft": {"attempts": 0, "review_minutes": 90}}
    assert server.asked[-1] == ("POST", path, {"reason": "Ann", **limits})


def test_create_show_and_entries() -> None:
    """OPS-8: what was made is shown in every dimension, and its movements as a table."""
    entry = {
        "sequence": 1, "kind": "hold", "hold": "h-1", "held": amounts("9.00"), "spent": amounts("0.00"),
        "reason": "node a", "created_at": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    server = FakeServer({AT: a_budget("b"), f"{AT}/b": a_budget("b"), f"{AT}/b/entries": {"entries": [entry]}})
    said = invoke(budget, server, "create", "b", "--level", "shot", "--currency", "CNY", "--soft-cost", "9")
    assert said.exit_code == 0
    body = {"id": "b", "level": "shot", "value_class": "normal", "currency": "CNY", "soft": {"cost": "9"}}
    assert server.asked == [("POST", AT, body)]
    shown = invoke(budget, server, "show", "b")
    assert "20.00 CNY" in shown.output
    assert "last refusal: 2026-01-01T00:00:00Z" in shown.output
    moved = invoke(budget, server, "entries", "b")
    assert "h-1" in moved.output
    refused = FakeServer({f"{AT}/x": problem("not_found")})
    assert invoke(budget, refused, "show", "x").exit_code == 1


def test_doctor_tells_what_does_not_add_up() -> None:
    """COST-11, OPS-8: a contradiction in the ledger fails the check and names the budget."""
    wrong = {"mismatches": [{"budget": "ep-1", "message": "its entries do not sum up"}]}
    said = invoke(doctor, FakeServer({"/v1/operator/budgets:check": wrong}), "--json")
    assert said.exit_code == 1
    [check] = [item for item in json.loads(said.output)["checks"] if item["name"] == "the ledger adds up"]
    assert check == {"name": "the ledger adds up", "ok": False, "detail": "ep-1: its entries do not sum up"}
