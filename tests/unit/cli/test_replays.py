"""What `explain --replay` and `whatif` say, and with which exit code they leave."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli import output
from cli.commands.explain import explain
from cli.commands.whatif import whatif
from tests.unit.cli.fake_server import FakeServer, a_run, a_task, invoke, problem


def replayed(identical: bool) -> dict[str, Any]:
    """A task of two rounds."""
    difference = None if identical else {"pointer": "/chosen", "recorded": '"a/x"', "replayed": None}
    rounds = [
        {"round": 1, "identical": True, "difference": None, "decision_digest": "0" * 64, "decided_at": None},
        {"round": 2, "identical": identical, "difference": difference, "decision_digest": "1" * 64, "decided_at": None},
    ]
    return {"task_id": "T1", "identical": identical, "rounds": rounds}


def answers(identical: bool) -> dict[str, Any]:
    """What a server knows of it, by the run's id as well."""
    return {"/v1/runs/R1": a_run(), "/v1/tasks/T1": a_task(), "/v1/tasks/T1/replay": replayed(identical)}


@pytest.mark.parametrize("name", ["T1", "R1"])
def test_an_identical_replay_is_a_success(name: str) -> None:
    """SEL-22: every round is told; a run's id is good enough."""
    said = invoke(explain, FakeServer(answers(True)), name, "--replay")
    assert said.exit_code == 0
    assert said.output.count("identical") == 2


def test_a_difference_is_told_and_is_no_success() -> None:
    """SEL-22: the first difference with both values, and exit code 1, with tables and with JSON."""
    said = invoke(explain, FakeServer(answers(False)), "T1", "--replay")
    assert said.exit_code == output.REFUSED
    words = " ".join(said.output.replace("│", " ").split())  # however wide the terminal, however the cell is folded
    assert "/chosen:" in words
    assert 'recorded "a/x",' in words
    said = invoke(explain, FakeServer(answers(False)), "T1", "--replay", "--json")
    assert said.exit_code == output.REFUSED
    assert json.loads(said.stdout)["rounds"][1]["difference"]["pointer"] == "/chosen"


def test_a_call_is_replayed_where_no_task_has_the_id() -> None:
    """SEL-22: with one command for all; whoever may see calls alone is not stopped by the tasks."""
    kept = {**replayed(True), "call_id": "C1"}
    del kept["task_id"]
    for elsewhere in (None, problem("forbidden", 403)):
        known = {"/v1/calls/C1/replay": kept} | ({"/v1/tasks/C1": elsewhere} if elsewhere else {})
        said = invoke(explain, FakeServer(known), "C1", "--replay")
        assert (said.exit_code, said.output.count("identical")) == (0, 2)
        assert "Replay of call C1" in said.output
    said = invoke(explain, FakeServer({}), "C2", "--replay")
    assert said.exit_code == output.REFUSED
    assert "there is no task, no run and no call 'C2'" in said.output + said.stderr


def page(count: int, cost: str, token: str = "", **more: Any) -> dict[str, Any]:
    """A page on which `count` of ten decisions move from b to a."""
    totals = {"chosen": 10, "waiting": 0, "failed": 0, "expected_successes": 9.5}
    before = {**totals, "expected_cost": [{"currency": "CNY", "amount": "60.00"}]}
    after = {**totals, "expected_cost": [{"currency": "CNY", "amount": cost}], "expected_successes": 8.0}
    example = {
        "task_id": f"T{count}", "round": 1, "model": "clip", "from_choice": "b/x", "to_choice": "a/x",
        "quote_before": {"currency": "CNY", "amount": "6.00"}, "quote_after": None, "reason": "cheaper",
    }  # fmt: skip
    move = {"model": "clip", "from_choice": "b/x", "to_choice": "a/x", "count": count}
    return {
        "decided": 10, "untouched": 0, "refused": 1, "unreadable": 0, "changed": count, "rounds": 22,
        "totals": {"before": before, "after": after}, "shared": {"before": before, "after": after},
        "moves": [move], "examples": [example], "next_page_token": token, **more,
    }  # fmt: skip


class Paged(FakeServer):
    """A server with two pages."""

    async def call(self, method: str, path: str, **given: Any) -> dict[str, Any]:
        """By the token."""
        self.asked.append((method, path, given.get("body")))
        return page(3, "40.10") if given["query"].get("page_token") == "next" else page(4, "50.20", "next")


@pytest.fixture
def policy(tmp_path: Path) -> str:
    """A policy file."""
    file = tmp_path / "policy.yaml"
    file.write_text("order: cost_first\n")
    return str(file)


def test_pages_are_added_up(policy: str) -> None:
    """SEL-23: counts, money and successes of all pages are one report, in JSON too; the text is sent with each."""
    server = Paged()
    said = invoke(whatif, server, "--policy", policy, "--since", "7d", "--model", "clip", "--json")
    assert said.exit_code == 0
    report = json.loads(said.stdout)
    assert (report["decided"], report["changed"], report["refused"], report["rounds"]) == (20, 7, 2, 22)
    assert report["totals"]["after"]["expected_cost"] == [{"currency": "CNY", "amount": "90.30"}]
    assert report["totals"]["after"]["expected_successes"] == 16.0
    assert [item["count"] for item in report["moves"]] == [7]
    assert [item["task_id"] for item in report["examples"]] == ["T4", "T3"]
    assert "next_page_token" not in report
    body = {"policy": "order: cost_first\n", "since_s": 604800.0, "model": "clip"}
    assert server.asked == [("POST", "/v1/operator/whatif", body)] * 2


def test_tables_say_what_would_have_been(policy: str) -> None:
    """SEL-23: moves, cost and success before and after, examples, and what cannot be known."""
    said = invoke(whatif, Paged(), "--policy", policy)
    assert said.exit_code == 0
    for words in (
        "20 decisions",
        "7 would",
        "120.00 CNY",
        "90.30 CNY",
        "19.00 (95.0%)",
        "b/x",
        "T3",
        "6.00 CNY -> none",
    ):
        assert words in said.output.replace("\n", " "), words
    assert "Health and capacity are as they were" in said.output


def test_nothing_found_says_so(policy: str) -> None:
    """SEL-23, OPS-8: a model that nobody asked for, or too short a time, is no success without a word."""
    nothing = page(0, "0.00") | {"decided": 0, "refused": 0, "moves": [], "examples": [], "rounds": 0}
    said = invoke(whatif, FakeServer({"/v1/operator/whatif": nothing}), "--policy", policy, "--model", "nobody")
    assert said.exit_code == 0
    assert "no decision about model 'nobody' was saved in that time" in said.output.replace("\n", " ")


def test_a_move_is_shown_by_a_few_examples(policy: str) -> None:
    """SEL-23: reasons of one move resemble each other: three are shown, and of every move some."""
    (one,) = page(9, "1.00")["examples"]
    many = [one | {"task_id": f"SAME{number}"} for number in range(9)] + [
        one | {"task_id": "OTHER", "to_choice": "z/z"}
    ]
    told = page(9, "1.00") | {"examples": many}
    said = invoke(whatif, FakeServer({"/v1/operator/whatif": told}), "--policy", policy)
    assert [f"SAME{number}" in said.output for number in range(5)] == [True, True, True, False, False]
    assert "OTHER" in said.output


@pytest.mark.parametrize(
    "arguments", [(), ("--since", "24h"), ("--since", "tomorrow", "--policy", "POLICY"), ("--policy", "nowhere.yaml")]
)
def test_wrong_use_asks_nothing(policy: str, arguments: tuple[str, ...]) -> None:
    """SEL-23, OPS-8: exactly one file, a stretch of time, a file that is there."""
    server = Paged()
    said = invoke(whatif, server, *(policy if item == "POLICY" else item for item in arguments))
    assert said.exit_code == output.WRONG_USE
    assert server.asked == []


def test_two_alternatives_are_wrong_use(policy: str) -> None:
    """SEL-23: one question at a time."""
    said = invoke(whatif, Paged(), "--policy", policy, "--prices", policy)
    assert said.exit_code == output.WRONG_USE


def test_a_bad_file_is_refused_by_the_server(policy: str) -> None:
    """SEL-23: each fault of the file is named."""
    refusal = problem("catalog_invalid", 422, errors=[{"pointer": "order", "reason": "must not be 'x'"}])
    said = invoke(whatif, FakeServer({"/v1/operator/whatif": refusal}), "--policy", policy)
    assert said.exit_code == output.REFUSED
    assert "order: must not be 'x'" in said.stderr
