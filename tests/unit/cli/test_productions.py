"""Productions and people's desks on the command line, against a server in words."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli import output
from cli.commands.dead_letters import dead_letters
from cli.commands.review import review
from cli.commands.run import run
from cli.progress import Maps, describe
from cli.run_view import MANY_ITEMS, tally
from tests.unit.cli.fake_server import FakeServer, Turns, a_run, invoke, problem

PRODUCTION = """
production: episode
nodes:
  - {id: frame, kind: generate, model: m, input: {ratio: 16:9}}
"""
REVIEWS, LETTERS = "/v1/operator/reviews", "/v1/operator/dead-letters"


def a_node(node_id: str, status: str, **more: Any) -> dict[str, Any]:
    """A node as the API tells it."""
    base = {"id": node_id, "kind": "generate", "status": status, "waiting_reason": None, "error": None, "parent": None}
    return {**base, "attempts": 1, "cost": None, "review_id": None, **more}


def a_production(status: str = "running", *nodes: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A run of a production."""
    return a_run(status, model=None, production="episode", nodes=list(nodes), **more)


def a_review(**more: Any) -> dict[str, Any]:
    """A review as the API tells it."""
    return {
        "id": "Q1", "run_id": "R1", "node": "frames", "tenant": "studio", "kind": "budget", "status": "open",
        "question": "May episode have more cost?", "cause": "9.00 of 9.00 are taken", "subject_hash": None,
        "artifacts": [], "subject_nodes": [], "failures": [{"code": "provider_error", "message": "it failed"}],
        "spent": {"currency": "CNY", "amount": "9.00"}, "decisions": ["raise_budget", "stop"],
        "remedies": ["raise_budget: the limit becomes what you say", "stop: no more of this"],
        "deadline": "2026-01-31T09:30:00Z", "assignee": None, "deputy": "lead", "escalations": 0,
        "root_cause": "budget:b", "rank": "rest", "input": {}, "subject": None, "created_at": "2026-01-30T09:30:00Z",
        "finished_at": None, "decision": None, "decided_by": None, "comment": None, **more,
    }  # fmt: skip


def a_letter(**more: Any) -> dict[str, Any]:
    """A case file as the API tells it."""
    error = {"code": "content_rejected", "message": "the provider refused the prompt"}
    attempt = {"number": 1, "supply": "a/b", "state": "failed", "error": error, "provider_task_id": "cgt-17"}
    return {
        "id": "D1", "run_id": "R1", "node": "frames/S03", "tenant": "studio", "error": error,
        "created_at": "2026-01-31T09:30:00Z", "task_ids": ["T1"], "attempts": [attempt], "cost": None,
        "input": {"prompt": "a chase"}, "desk": "content", "artifacts": [], "redriven_at": None,
        "redrive_reason": None, **more,
    }  # fmt: skip


def test_a_file_is_a_production_or_one_request(tmp_path: Path) -> None:
    """OPS-8: the document goes in whole, read as YAML 1.2; a file with a model is a single request."""
    server = FakeServer({"/v1/runs": {"id": "R1", "status": "pending"}})
    file = tmp_path / "episode.yaml"
    file.write_text(PRODUCTION)
    assert invoke(run, server, "create", str(file), "--label", "act=1").exit_code == 0
    (_, _, body) = server.asked.pop()
    assert body["production"]["nodes"][0]["input"] == {"ratio": "16:9"}
    assert (body["production"]["production"], body["labels"]) == ("episode", {"act": "1"})
    file.write_text('{"model": "m", "input": {"prompt": "x"}, "labels": {"a": "b"}}')
    assert invoke(run, server, "create", str(file), "--json").exit_code == 0
    assert server.asked == [("POST", "/v1/runs", {"model": "m", "input": {"prompt": "x"}, "labels": {"a": "b"}})]


@pytest.mark.parametrize(
    "text, said",
    [("- a", "holds no mapping"), ("name: x", "neither a production nor a model"), ("a: 1\na: 2", "line 2, column 1"),
     ("model: m\nprompt: x", "no field 'prompt'"), (None, "cannot be read")],
)  # fmt: skip
def test_a_file_that_cannot_be_meant_is_wrong_use(tmp_path: Path, text: str | None, said: str) -> None:
    """OPS-8: the place is named before anything is asked of the server."""
    file, server = tmp_path / "a.yaml", FakeServer()
    if text is not None:
        file.write_text(text)
    answer = invoke(run, server, "create", str(file))
    assert (answer.exit_code, server.asked) == (output.WRONG_USE, [])
    assert said in answer.stderr
    for wrong in (["create"], ["create", "--model", "m"], ["create", str(file), "--model", "m"]):
        assert invoke(run, server, *wrong).exit_code == output.WRONG_USE


def test_commands_are_sent_as_they_are_meant() -> None:
    """STEER-1, RUN-8, DLQ-1: what was said and nothing else; what contradicts itself is wrong use."""
    at, found = "/v1/runs/R1", a_production()
    steered = {"steering_event_id": "S1", "sequence": 3}
    answers = {f"{at}/steer": steered, **{f"{at}/{verb}": found for verb in ("pause", "resume", "redrive")}}
    server = FakeServer(answers)
    said = invoke(run, server, "steer", "R1", "style", "--text", "in blue")
    assert "accepted as input 3" in said.output
    invoke(run, server, "steer", "R1", "size", "--value", "[1, 2]")
    invoke(run, server, "pause", "R1", "--reason", "Ann: lunch")
    invoke(run, server, "resume", "R1")
    invoke(run, server, "redrive", "R1", "--node", "a/b", "--input", '{"prompt": "y"}', "--supply", "c/d")
    assert server.asked == [
        ("POST", f"{at}/steer", {"kind": "style", "data": {"text": "in blue"}}),
        ("POST", f"{at}/steer", {"kind": "size", "data": {"value": [1, 2]}}),
        ("POST", f"{at}/pause", {"reason": "Ann: lunch"}),
        ("POST", f"{at}/resume", {}),
        ("POST", f"{at}/redrive", {"node": "a/b", "supply": "c/d", "input": {"prompt": "y"}}),
    ]
    for wrong in (("steer", "R1", "k"), ("steer", "R1", "k", "--text", "a", "--value", "1"),
                  ("steer", "R1", "k", "--value", "{"), ("redrive", "R1", "--supply", "c/d")):  # fmt: skip
        assert invoke(run, server, *wrong).exit_code == output.WRONG_USE


def test_an_input_that_nobody_will_take_is_said_to_be_one() -> None:
    """STEER-3: it is accepted, and a slip of the pen is seen at once and not at the end of the run."""
    steered = {"steering_event_id": "S1", "sequence": 1, "nodes": [], "kinds": ["style", "mood"]}
    said = invoke(run, FakeServer({"/v1/runs/R1/steer": steered}), "steer", "R1", "stlye", "--text", "in blue")
    assert (said.exit_code, "accepted as input 1" in said.output) == (0, True)
    assert "nobody will take it: no node declares 'stlye'; declared: style, mood" in said.stderr
    taken = FakeServer({"/v1/runs/R1/steer": {**steered, "nodes": ["shots"]}})
    assert "nobody" not in invoke(run, taken, "steer", "R1", "style", "--text", "in blue").stderr


def test_a_preview_tells_nodes_and_money() -> None:
    """STALE-1: what would be touched, and the most that it may cost; nobody can say is no amount."""
    cost = {"currency": "CNY", "amount": "4.00"}
    affected = [{"node": "a", "effect": "redriven", "cost": cost}, {"node": "b", "effect": "stale", "cost": None}]
    server = FakeServer({"/v1/runs/R1/redrive/preview": {"run": a_production(), "affected": affected, "cost": cost}})
    said = invoke(run, server, "redrive", "R1", "--node", "a", "--preview")
    assert said.exit_code == 0
    assert "together at most 4.00 CNY; nothing was changed" in said.output
    assert "stale" in said.output


def test_a_production_is_shown_as_the_tree_that_it_is() -> None:
    """OPS-8, RUN-2: maps with their items, each with its reason, cost and error; and the next step."""
    failed = {"code": "check_failed", "message": "min_size: too small"}
    nodes = [
        a_node("gate", "waiting_human", kind="gate", waiting_reason="gate: is it good?", review_id="Q1"),
        a_node("frames", "running", kind="map"),
        a_node("frames/S01", "succeeded", parent="frames", cost={"currency": "CNY", "amount": "1.00"}),
        a_node("frames/S02", "failed", parent="frames", error=failed, shot_class="action"),
        a_node("film", "pending", waiting_reason="dependency: frames is running"),
    ]
    found = a_production("running", *nodes, backpressure="20 reviews are open", pending_steering=2, budget_id="run:R1")
    said = invoke(run, FakeServer({"/v1/runs/R1": found}), "show", "R1")
    assert said.exit_code == 0
    for words in ("episode", "1 of 2 done, 1 failed", "  S01", "1.00 CNY", "check_failed: min_size: too small",
                  "generate (action)", "dependency: frames is running", "producing waits for people: 20 reviews",
                  "2 steering inputs", "budget run:R1", "pointsman review show Q1"):  # fmt: skip
        assert words in said.output, words
    ended = invoke(run, FakeServer({"/v1/runs/R1": a_production("dead_letter")}), "watch", "R1")
    assert ended.exit_code == output.NO_RESULT
    assert "pointsman dead-letters list --run R1" in ended.output


def test_a_large_map_is_folded() -> None:
    """OPS-8: of two hundred items those that tell something are seen; --all shows every one."""
    items = [a_node(f"m/i{number:03}", "succeeded", parent="m") for number in range(200)]
    items[150] = a_node("m/i150", "running", parent="m")
    server = FakeServer({"/v1/runs/R1": a_production("running", a_node("m", "running", kind="map"), *items)})
    said = invoke(run, server, "show", "R1").output
    assert ("i150" in said, "i149" in said, "199 more" in said) == (True, False, True)
    assert "i149" in invoke(run, server, "show", "R1", "--all").output
    assert len(items) > MANY_ITEMS
    assert tally(items) == "199 of 200 done, 1 running"


def events() -> list[dict[str, Any]]:
    """A short history of a production with one map."""
    told: list[tuple[str, dict[str, Any]]] = [
        ("run_created", {"production": {"production": "episode"}, "model": ""}),
        ("node_ready", {"node": "frames", "items": [{"id": "a"}, {"id": "b"}]}),
        ("node_completed", {"node": "frames/a"}),
        ("node_failed", {"node": "frames/b", "error": {"code": "content_rejected", "message": "no"}}),
        ("run_redriven", {"nodes": ["frames/b"]}),
        ("gate_opened", {"node": "gate", "review": {"id": "Q1", "question": "Is it good?"}}),
        ("run_paused", {"reason": ""}),
    ]
    return [{"sequence": number, "kind": kind, "data": data} for number, (kind, data) in enumerate(told, start=1)]


def test_maps_are_counted_by_their_events() -> None:
    """OPS-8: an item that ended counts, one that begins again does not."""
    maps, seen = Maps(), []
    for event in events():
        maps.hear(event)
        seen.append(maps.done("frames"))
    assert (maps.items, seen) == ({"frames": 2}, [0, 0, 1, 2, 1, 1, 1])


def test_a_watcher_of_a_production_sees_its_events() -> None:
    """OPS-8: events are lines on stderr, also in a pipe; a paused run tells how it goes on, and exits with 0."""
    server = FakeServer({"/v1/runs/R1": a_production("paused")}, told=events())
    said = invoke(run, server, "watch", "R1")
    assert said.exit_code == 0
    assert "pointsman run resume R1" in said.output
    assert "frames/b failed: content_rejected: no" in said.stderr
    assert "gate asks: Is it good? (pointsman review show Q1)" in said.stderr
    assert "ready" not in said.stderr
    assert invoke(run, server, "watch", "R1", "--json").stderr == ""
    assert describe({"kind": "node_waiting", "data": {"node": "film", "reason": "slot: 2"}}) == "film waits: slot: 2"


def test_reviews_are_listed_shown_claimed_and_decided() -> None:
    """HUMAN-1, HUMAN-2, COST-10: the context pack with the commands that decide; what was said alone is sent."""
    asked = a_review()
    pages = [{"reviews": [], "next_page_token": "1"}, {"reviews": [asked], "next_page_token": ""}]
    said = invoke(review, FakeServer(Turns(REVIEWS, pages)), "list", "--run", "R1")
    assert "May episode have more cost?" in said.output
    shown = invoke(review, FakeServer({f"{REVIEWS}/Q1": asked}), "show", "Q1")
    assert "pointsman review decide Q1 raise_budget --budget CNY:250.00" in shown.output
    assert "failed before: provider_error: it failed" in shown.output
    assert "then lead" in shown.output
    board = a_review(kind="gate", subject={"title": "Die Brücke", "shots": ["a harbour", "a storm"]})
    shown = invoke(review, FakeServer({f"{REVIEWS}/Q1": board}), "show", "Q1").output
    assert "about:\n    title: Die Brücke\n    shots:\n    - a harbour\n    - a storm\n" in shown
    missing = invoke(review, FakeServer({}), "show", "Q2")
    assert (missing.exit_code, "pointsman review list" in missing.stderr) == (output.REFUSED, True)
    decided = a_review(status="decided", decision="raise_budget", decided_by="ann")
    server = FakeServer({f"{REVIEWS}/Q1/claim": asked, f"{REVIEWS}/Q1/decide": decided})
    assert invoke(review, server, "claim", "Q1", "--who", "ann").exit_code == 0
    verdict = ("--budget", "CNY:250.00", "--comment", "worth it", "--node", "a", "--input", '{"x": 1}')
    said = invoke(review, server, "decide", "Q1", "raise_budget", *verdict)
    assert "pointsman run show R1" in said.output
    body = {"decision": "raise_budget", "comment": "worth it", "input": {"x": 1, "node": "a"}}
    assert server.asked == [
        ("POST", f"{REVIEWS}/Q1/claim", {"who": "ann"}),
        ("POST", f"{REVIEWS}/Q1/decide", {**body, "budget": {"currency": "CNY", "amount": "250.00"}}),
    ]
    assert invoke(review, server, "decide", "Q1", "raise_budget", "--review-minutes", "240").exit_code == 0
    assert server.asked[-1][2] == {"decision": "raise_budget", "budget": {"review_minutes": 240}}
    for wrong in (["decide", "Q1", "perhaps"], ["decide", "Q1", "raise_budget", "--budget", "250"]):
        assert invoke(review, server, *wrong).exit_code == output.WRONG_USE


def test_dead_letters_are_case_files() -> None:
    """DLQ-1: task, attempts, errors, costs and provider ids, and the way back on the same node."""
    letter = a_letter()
    server = FakeServer({LETTERS: {"dead_letters": [letter], "next_page_token": ""}, f"{LETTERS}/D1": letter})
    assert "content_rejected" in invoke(dead_letters, server, "list", "--run", "R1").output
    said = invoke(dead_letters, server, "show", "D1")
    for words in ("cgt-17", "the provider refused the prompt", "a chase", "redrive R1 --node frames/S03 --preview"):
        assert words in said.output, words
    assert json.loads(invoke(dead_letters, server, "list", "--json").output) == {"dead_letters": [letter]}
    redriven = a_letter(redriven_at="2026-02-01T00:00:00Z", redrive_reason="ann: a walk instead")
    again = invoke(dead_letters, FakeServer({f"{LETTERS}/D1": redriven}), "show", "D1")
    assert "redriven at 2026-02-01T00:00:00Z: ann: a walk instead" in again.output
    refused = FakeServer({f"{LETTERS}/D2": problem("not_found")})
    assert invoke(dead_letters, refused, "show", "D2").exit_code == output.REFUSED
