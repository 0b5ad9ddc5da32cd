"""`pointsman classify` and `pointsman adapters`: replies from files, tables and JSON, without a server."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from cli.main import main
from cli.samples import Asked, Unreadable, read_samples
from services.provider_adapter.adapters.registry import ADAPTERS

CORPUS = Path(__file__).parents[2] / "cases" / "provider_errors.jsonl"
MODERATED = {"error": {"code": "content_policy_violation", "message": "blocked"}}


def run(*words: str, given: str = "") -> Result:
    """The command line, with that on its standard input. Its output is wide enough for every column."""
    return CliRunner().invoke(main, list(words), input=given)


def sample(**changes: Any) -> dict[str, Any]:
    """A labelled sample."""
    expected = {"category": "content", "scope": "request", "retryable": False}
    return {"id": "s-1", "provider": "openai", "http_status": 400, "body": MODERATED, "expected": expected} | changes


def test_one_sample_and_its_label() -> None:
    """ERR-1: category, scope, retryable, code and the decisive clue; the exit code tells that the label agrees."""
    done = run("classify", "-", given=json.dumps(sample()))
    assert done.exit_code == 0
    line = next(line for line in done.output.splitlines() if "s-1" in line)
    for word in (
        "openai",
        "submit",
        "400",
        "content",
        "request",
        "no",
        "content_rejected",
        "body.error.code",
        "agrees",
    ):
        assert word in line
    assert "labels that agree: 1 of 1" in done.output


def test_a_label_that_disagrees_is_exit_code_1() -> None:
    """ERR-1: the whole label counts, `retryable` too; without labels there is nothing to disagree with."""
    wrong = sample(expected={"category": "content", "scope": "request", "retryable": True})
    done = run("classify", "-", given=json.dumps(sample()) + "\n" + json.dumps(wrong))
    assert done.exit_code == 1
    assert "labels that agree: 1 of 2" in done.output
    assert run("classify", "-", given=json.dumps(sample(expected=None))).exit_code == 0


def test_the_corpus_by_lines() -> None:
    """ERR-1: the file in its own form; every certain label agrees, and all of it is told as JSON."""
    done = run("classify", str(CORPUS), "--certain", "--json")
    verdicts = json.loads(done.output)
    assert done.exit_code == 0
    assert len(verdicts) == 375
    assert all(verdict["agrees"] and verdict["evidence"] for verdict in verdicts)


RAW = "HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nRetry-After: 7\r\n\r\n" + json.dumps(
    {"error": {"message": "slow down"}}
)


@pytest.mark.parametrize(
    "text",
    [
        RAW,
        "HTTP/1.1 100 Continue\r\n\r\n" + RAW,
        "HTTP/2 302 \r\nlocation: /x\r\n\r\n" + RAW,
        RAW.replace("\r\n", "\n"),
    ],
    ids=["crlf", "continue", "redirect", "lf"],
)
def test_a_raw_reply(text: str) -> None:
    """ERR-1: what `curl -i` prints: the last reply, with its headers."""
    [verdict] = json.loads(run("classify", "-", "--json", given=text).output)
    assert (verdict["code"], verdict["http_status"], verdict["retry_after_ms"]) == ("rate_limited", 429, 7000)
    assert verdict["adapter"] == "generic"


def test_a_bare_body_with_its_status_and_phase() -> None:
    """ERR-1: the same 404 means the model on submit and the task on poll; the adapter's table is asked on demand."""
    body = json.dumps({"code": 1203, "message": "x"})
    told = ["classify", "-", "--json", "--status", "404", "--adapter", "kling"]
    [submit] = json.loads(run(*told, given=body).output)
    [poll] = json.loads(run(*told, "--phase", "poll", given=body).output)
    assert (submit["code"], submit["evidence"]) == ("model_unavailable", "body.code")
    assert (poll["code"], poll["category"]) == ("poll_failed", "unknown")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "nothing in it"),
        ('{"error": "x"}', "--status"),
        ("not json", "line 1"),
        ('{"http_status": 400}\n{"cut', "line 2"),
        ("HTTP/1.1\r\n\r\n", "status line"),
        ('{"http_status": "400"}', "whole number"),
        ('{"http_status": 400, "adapter": "nobody"}', "nobody"),
        ('{"http_status": 400, "phase": "dream"}', "submit, poll or stream"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_place(text: str, word: str) -> None:
    """OPS-8: wrong use is exit code 2, in one sentence that names the place."""
    done = run("classify", "-", given=text)
    assert done.exit_code == 2
    assert word in done.output


def test_secrets_in_a_reply_are_not_repeated() -> None:
    """ERR-4: the provider's words are redacted here as everywhere."""
    body = {"error": {"message": "see https://x.example/a?X-Amz-Signature=abcdef0123456789abcdef and retry"}}
    assert "abcdef0123456789" not in run("classify", "-", "--json", given=json.dumps(sample(body=body))).output


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    """ERR-1: a file is samples or it is `Unreadable`, and nothing else."""
    try:
        samples = read_samples(text, Asked())
    except Unreadable:
        return
    assert all(sample.reply is not None for sample in samples)


def test_the_adapters_and_their_ladder() -> None:
    """OPS-8: one line an adapter, with the rungs that it stands on."""
    done = run("adapters")
    assert done.exit_code == 0
    for name in ADAPTERS:
        assert name in done.output
    told = json.loads(run("adapters", "--json").output)
    assert [adapter["name"] for adapter in told] == sorted(ADAPTERS)
    assert all(adapter["quality"]["recorded_exchanges"] >= 20 for adapter in told)


@pytest.mark.parametrize("name", ADAPTERS)
def test_everything_about_one_adapter(name: str) -> None:
    """OPS-8: kinds, auth, limits, states, cost fields, the table of faults, and what is ignored on purpose."""
    manifest, table = ADAPTERS[name].manifest, ADAPTERS[name].table
    done = run("adapters", name)
    assert done.exit_code == 0
    for word in (*manifest.kinds, *manifest.limits, *manifest.states, *manifest.cost_fields, *manifest.ignored_fields):
        assert word in done.output
    told = json.loads(run("adapters", name, "--json").output)
    assert [row["theirs"] for row in told["faults"]] == [row.theirs for row in table.rows]
    assert told["read_fields"] == sorted(manifest.read_fields)
    assert told["auth"] == manifest.auth.told()


def test_an_adapter_that_there_is_not() -> None:
    """OPS-8: an unknown name is refused with those that there are."""
    done = run("adapters", "nobody")
    assert done.exit_code == 2
    assert "minimax" in done.output
