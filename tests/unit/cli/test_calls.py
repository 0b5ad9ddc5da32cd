"""What `invoke` says, and `explain` of a call."""

import json
from pathlib import Path
from typing import Any

from cli import output
from cli.commands.calls import calls
from cli.commands.explain import explain, why
from cli.commands.invoke import invoke as invoke_command
from tests.unit.cli.fake_server import FakeServer, a_call, invoke, problem

HELLO = json.dumps({"messages": [{"role": "user", "content": "Hello"}]})


def result(kind: str, output: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A result as the API tells it."""
    usage = {"cost": {"currency": "USD", "amount": "0.002"}, "attempts": 1, "supply": "a/b"}
    base = {"id": "C1", "model": "m", "kind": kind, "output": output, "artifacts": [], "degraded": False}
    return {**base, "cached": False, "usage": usage, **more}


def test_an_answer_is_printed() -> None:
    """OPS-8: the answer on standard output, who served it and what it cost beside it."""
    chat = result("chat", {"choices": [{"message": {"content": "Good [day]."}}]})
    server = FakeServer({"/v1/invoke": chat})
    said = invoke(invoke_command, server, "--model", "m", "--input", HELLO, "--option", "timeout_s=20")
    assert said.stdout == "Good [day].\n"
    assert "call C1: a/b, 1 attempt, 0.002 USD" in said.stderr
    assert "pointsman explain C1" in said.stderr
    ((_, _, body),) = server.asked
    assert body == {"model": "m", "input": json.loads(HELLO), "options": {"timeout_s": 20}}


def test_other_kinds_are_printed_in_short() -> None:
    """OPS-8: of vectors the shape, of a picture the text; a lesser service is told."""
    vectors = result("embedding", {"data": [{"embedding": [1, 2, 3]}]})
    assert invoke(invoke_command, FakeServer({"/v1/invoke": vectors}), "--model", "m", "--input", "{}").stdout == (
        "1 vector of 3 numbers\n"
    )
    lesser = {"degraded": True, "requested_profile": "A", "actual_profile": "B", "dropped_inputs": ["x"]}
    read = result("ocr", {"text": "NEMO"}, **lesser)
    said = invoke(invoke_command, FakeServer({"/v1/invoke": read}), "--model", "m", "--input", "{}").stdout
    assert said == "NEMO\ndegraded A -> B, without x\n"


def test_files_are_saved(tmp_path: Path) -> None:
    """OPS-8: --save keeps what came of the call under the call's id."""
    made = {"media_type": "image/png", "bytes": 3, "url": "/v1/artifacts/aa", "sha256": "aa"}
    server = FakeServer({"/v1/invoke": result("image", {}, artifacts=[made])})
    said = invoke(invoke_command, server, "--model", "m", "--input", "{}", "--save", str(tmp_path))
    assert (tmp_path / "C1-1.png").read_bytes() == b"abc"
    assert "image/png 3 bytes" in said.stdout


def test_a_stream_is_printed_as_it_comes() -> None:
    """OPS-8: text alone on standard output; the id of the call beside it."""
    server = FakeServer()
    server.told = [{"id": "chatcmpl-C1", "choices": [{"delta": {"content": text}}]} for text in ("Good", " day.")]
    server.told.append({"id": "chatcmpl-C1", "choices": []})
    said = invoke(invoke_command, server, "--model", "m", "--input", HELLO, "--stream")
    assert said.stdout == "Good day.\n"
    assert "pointsman explain C1" in said.stderr
    assert server.asked[0][2]["model"] == "m"


def test_a_stream_that_breaks_is_a_failure() -> None:
    """OPS-8: what came is printed, and the command fails with the reason and the next step."""
    server = FakeServer()
    server.told = [{"id": "chatcmpl-C1", "choices": [{"delta": {"content": "Good"}}]}]
    server.broken = problem("stream_interrupted", 502, call_id="C1")
    said = invoke(invoke_command, server, "--model", "m", "--input", HELLO, "--stream")
    assert (said.exit_code, said.stdout.strip()) == (1, "Good")
    assert "pointsman explain C1" in said.stderr


def test_wrong_use_of_a_call() -> None:
    """OPS-8: a stream is for reading, so it is neither JSON nor saved."""
    said = invoke(invoke_command, FakeServer(), "--model", "m", "--input", HELLO, "--stream", "--json")
    assert said.exit_code == 2
    assert invoke(invoke_command, FakeServer(), "--model", "m", "--input", "[1]", "--stream").exit_code == 2


def test_explain_takes_the_id_of_a_call_too() -> None:
    """SYN-11: a call is explained by its end, its times, its tries and its rounds."""
    server = FakeServer({"/v1/calls/C1": a_call()})
    said = invoke(explain, server, "C1").stdout
    assert "call C1 for m is succeeded" in said
    assert "500 ms: 400 in tries, 98.5 waiting, 1.5 of our own" in said
    for word in ("a/b", "perhaps charged", "9, 3", "90.5", "round 1", "is cheap"):
        assert word in said
    assert json.loads(invoke(explain, server, "C1", "--json").stdout)["id"] == "C1"


def test_explain_of_a_key_that_may_call_alone() -> None:
    """AUTH-1: a key with scope `invoke` may not see tasks, and still explains its calls."""
    answers = {"/v1/tasks/C1": problem("forbidden", 403), "/v1/calls/C1": a_call(status="failed", supply=None)}
    assert "served by nobody" in invoke(explain, FakeServer(answers), "C1").stdout
    refused = invoke(explain, FakeServer({"/v1/tasks/X": problem("forbidden", 403)}), "X")
    assert (refused.exit_code, "forbidden" in refused.stderr) == (1, True)


def test_calls_are_listed() -> None:
    """OPS-8: each with its end, who served it, cost and error; a page names the next; an operator's key sees whose."""
    failed = {"code": "supply_unavailable", "message": "nobody"}
    told = [
        a_call(tenant="acme", usage=None, finished_at="2026-01-31T09:30:00.5Z", error=failed, supply=None),
        a_call(tenant="acme", usage={"input_tokens": 9, "output_tokens": 3}, finished_at=None, cached=True),
    ]
    page = {"calls": told, "next_page_token": "older"}
    server = FakeServer({"/v1/calls": page, "/v1/operator/calls": page})
    said = invoke(calls, server, "--status", "failed", "--since", "1h").output
    for words in ("supply_unavailable", "2026-01-31T09:30:00Z", "cache", "9, 3", "--page-token older"):
        assert words in said
    assert "acme" not in said
    assert "acme" in invoke(calls, server, "--all-tenants").output
    assert invoke(calls, server, "--tenant", "acme").exit_code == 0
    assert [path for _, path, _ in server.asked] == ["/v1/calls", "/v1/operator/calls", "/v1/operator/calls"]
    assert invoke(calls, server, "--tenant", "acme", "--all-tenants").exit_code == output.WRONG_USE
    assert "no calls" in invoke(calls, FakeServer({"/v1/calls": {"calls": [], "next_page_token": ""}})).output


def test_moments_are_typed_as_one_thinks_of_them() -> None:
    """OPS-8: a stretch of time ago, or a time with its offset; whatever else is refused with what may be typed."""
    server = FakeServer({"/v1/calls": {"calls": [], "next_page_token": ""}})
    for good in ("90s", "7d", "2026-01-31T09:30:00Z", "2026-01-31T09:30:00+02:00"):
        assert invoke(calls, server, "--since", good).exit_code == 0, good
    for bad in ("0h", "yesterday", "2026-01-31T09:30:00", "1w"):
        said = invoke(calls, server, "--until", bad)
        assert (said.exit_code, "is no time" in said.stderr) == (2, True), bad


def test_a_fate_is_told_once() -> None:
    """SEL-24: the figures of a fate mostly name its reason."""
    assert why("concurrency", "supply a/x concurrency 5 of 5") == "supply a/x concurrency 5 of 5"
    assert why("tried", "attempt 1") == "tried attempt 1"
    assert why("capability", "needs 3 videos, admits 0") == "capability needs 3 videos, admits 0"
    assert why("draining", "") == "draining"
