"""Words, exit codes and books of the command line."""

import io
from decimal import Decimal
from pathlib import Path

import pytest
from rich.console import Console

from cli import output
from cli.api import Problem
from cli.commands.demo import tell_end
from cli.demo.accounts import compare
from cli.demo.facts import Facts, words
from cli.progress import describe


def test_a_problem_names_the_fields_and_the_next_step(capsys: pytest.CaptureFixture[str]) -> None:
    """OPS-8: an error tells what was wrong, where, and what to do next; the exit code is the refusal's."""
    body = {
        "code": "unauthenticated",
        "request_id": "R",
        "detail": "who are you?",
        "errors": [{"pointer": "/input/prompt", "reason": "is missing"}],
    }
    with pytest.raises(SystemExit) as left:
        output.fail_with_problem(Problem(401, body))
    said = capsys.readouterr().err
    assert left.value.code == output.REFUSED
    assert "who are you?" in said
    assert "/input/prompt: is missing" in said
    assert "--key" in said


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ({"kind": "attempt_started", "data": {"number": 1, "supply": "a/b"}}, "attempt 1 on a/b"),
        (
            {"kind": "attempt_finished", "data": {"number": 2, "state": "failed", "error": {"code": "key_invalid"}}},
            "attempt 2 failed (key_invalid)",
        ),
        ({"kind": "node_waiting", "data": {"reason": "capacity"}}, "waits: capacity"),
        (
            {"kind": "run.steer.accepted", "data": {"sequence": 1, "kind": "style", "steering_event_id": "E1"}},
            "steering input 1 (style) is accepted",
        ),
        (
            {
                "kind": "run.steer.accepted",
                "data": {"sequence": 1, "kind": "style", "steering_event_id": "E2", "source_event_id": "E1"},
            },
            "steering input 1 (style) waits again",
        ),
        (
            {"kind": "run.steer.superseded", "data": {"sequence": 2, "kind": "mood"}},
            "steering input 2 (mood) was taken by nobody",
        ),
        ({"kind": "a_kind_of_tomorrow", "data": {}}, "a kind of tomorrow"),
    ],
)
def test_events_are_told_in_words_and_unknown_kinds_survive(event: dict[str, object], expected: str) -> None:
    """EVENT-2: a kind that this release does not know is shown by its name."""
    assert describe(event) == expected


def test_facts_are_told_in_words() -> None:
    """OPS-8: what was seen reads as words, and a broken fact names what was expected."""
    facts = Facts()
    assert facts.equal("a", [1, 2], [1, 2])
    assert not facts.equal("b", {"x": 1}, {"x": 2})
    assert [fact.seen for fact in facts.facts] == ["1, 2", "seen x 1, expected x 2"]
    assert [fact.claim for fact in facts.broken] == ["b"]
    assert words([]) == "none"


def test_the_end_of_the_demonstration_names_what_did_not_hold(capsys: pytest.CaptureFixture[str]) -> None:
    """OPS-8: each broken fact with what was seen and expected, and the number of all that were shown."""
    facts = Facts()
    facts.equal("one", 1, 1)
    facts.equal("two", 1, 2)
    facts.check("three", False, [4], expected="5 or more")
    with pytest.raises(SystemExit):
        tell_end(facts, Path("demo"))
    said = capsys.readouterr().err
    assert "2 of 3 facts did not hold" in said
    assert "two: seen 1, expected 2" in said
    assert "three: seen 4, expected 5 or more" in said


def attempt(channel: str, state: str, cost: str | None) -> dict[str, object]:
    """One try as the API tells it."""
    return {"channel": channel, "state": state, "cost": cost and {"currency": "CNY", "amount": cost}}


def submission(account: str, charged: str | None, currency: str = "CNY") -> dict[str, object]:
    """One line of the providers' ledger."""
    return {"account": account, "charged": charged and {"currency": currency, "amount": charged}}


def test_equal_books_are_found_equal() -> None:
    """VER-7: counts and money by account, converted; a refused attempt counts in neither book."""
    tasks = [{"attempts": [attempt("a", "failed", "0.00"), attempt("b", "succeeded", "7.00")]}]
    ledger = {"submissions": [submission("b", "1.00", "USD")], "posts": {"repeated": {}}}
    facts = Facts()
    [_, line] = compare(tasks, ledger, facts)
    assert not facts.broken
    assert (line.account, line.ours, line.theirs, line.our_cost) == ("b", 1, 1, Decimal("7.00"))


def test_a_submission_too_many_is_found() -> None:
    """VER-7: the providers' ledger is the judge: one more there than here, or a repeated request, breaks the facts."""
    tasks = [{"attempts": [attempt("a", "succeeded", "1.00")]}]
    twice = {"submissions": [submission("a", "1.00"), submission("a", None)], "posts": {"repeated": {"token": 2}}}
    facts = Facts()
    compare(tasks, twice, facts)
    broken = {fact.claim for fact in facts.broken}
    assert "submissions: our count and the providers'" in broken
    assert "requests that reached a provider twice" in broken


def test_an_id_stays_in_one_piece_on_a_narrow_terminal() -> None:
    """It is there to be copied into the next command; the other columns give way."""
    run = "01M8P0YNM2M80GP94SMZDX4ZNR"
    row = (run, "succeeded", "seedance-2.0-933", "2026-11-30T10:45:32Z", "boreal/seedance", 1, "2.40 CNY", "")
    columns = ("run", "status", "model", "created", "supply", "attempts", "cost", "error")
    narrow = Console(width=80, file=io.StringIO())
    with narrow.capture() as seen:
        narrow.print(output.table("Runs", columns, [row]))
    assert run in seen.get()
