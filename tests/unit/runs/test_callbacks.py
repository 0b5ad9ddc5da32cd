"""What is told about a Run's end, and when it is sent again."""

import json
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from libs.kernel.money import Money
from services.runs.domain.callbacks import BACKOFF_S, Callback, CallbackState, Sent, after_sending, callback_of
from services.runs.domain.plan import MAIN
from services.runs.domain.run import Artifact, Event, Failure, Node, NodeState, Order, Result, Run, RunState, Usage
from tests.support.worlds import START

ORDER = Order("clip", {"prompt": "a secret plan"}, callback_url="https://user.example/hook?token=t")
MADE = Artifact("ab" * 32, "video/mp4", 9)
NODE = Node(
    MAIN, "generate", "t1", NodeState.SUCCEEDED, input={"prompt": "a secret plan"}, artifacts=(MADE,), started_at=START
)
DONE = Run(
    "r1", "a", RunState.SUCCEEDED, ORDER,
    {MAIN: NODE},
    START, Usage(Money("CNY", Decimal("4.00")), 1, "ark/clip"), {"act": "1"}, START, START, result=Result((MADE,)),
)  # fmt: skip


def event(kind: str) -> Event:
    """An event of the Run."""
    return Event(f"e-{kind}", "r1", 7, kind, {}, START)


def made(run: Run = DONE, kind: str = "run_completed") -> Callback:
    """The message about that end."""
    callback = callback_of(run, [event("node_completed"), event(kind)])
    assert callback is not None
    return callback


def test_an_end_is_told_as_the_run_is_read() -> None:
    """AUTH-5: status, result, cost and nodes as GET tells them, artifacts by path; no input and no URL."""
    callback = made()
    assert (callback.id, callback.type, callback.url) == ("e-run_completed", "run.completed", ORDER.callback_url)
    body = json.loads(callback.body)
    assert body.keys() == {"type", "timestamp", "data"}
    told = body["data"]
    assert (told["id"], told["status"], told["model"], told["labels"]) == ("r1", "succeeded", "clip", {"act": "1"})
    artifact = {"sha256": MADE.sha256, "media_type": "video/mp4", "bytes": 9, "url": f"/v1/artifacts/{MADE.sha256}"}
    assert told["result"]["artifacts"] == [artifact]
    assert told["usage"] == {"cost": {"currency": "CNY", "amount": "4.00"}, "attempts": 1, "supply": "ark/clip"}
    assert [(node["id"], node["status"], node["task_id"]) for node in told["nodes"]] == [(MAIN, "succeeded", "t1")]
    assert "secret" not in callback.body
    assert "token" not in callback.body


@pytest.mark.parametrize(
    ("kind", "type_"),
    [
        ("run_failed", "run.failed"), ("run_timed_out", "run.timed_out"), ("run_cancelled", "run.cancelled"),
        ("run_dead_lettered", "run.dead_lettered"),
    ],
)  # fmt: skip
def test_every_end_has_its_type(kind: str, type_: str) -> None:
    """AUTH-5: each terminal event is told, a failed one with its error."""
    failure = Failure("supply", "channel", True, "key_invalid", "revoked")
    callback = made(replace(DONE, state=RunState.FAILED, failure=failure, result=None), kind)
    assert callback.type == type_
    assert json.loads(callback.body)["data"]["error"]["code"] == "key_invalid"


def test_nothing_else_is_told() -> None:
    """AUTH-5: a pause, a start, and the end of a Run without a URL are told to nobody."""
    assert callback_of(DONE, [event("run_paused"), event("run_started")]) is None
    assert callback_of(replace(DONE, order=replace(ORDER, callback_url="")), [event("run_completed")]) is None


def test_pauses_grow_until_it_is_given_up() -> None:
    """AUTH-5: sent again after 5 s, 30 s, 2 min, 10 min, 1 h and 6 h, then given up with the last error on record."""
    callback, now, pauses = made(), START, []
    while callback.state is CallbackState.PENDING:
        claimed = replace(callback, attempts=callback.attempts + 1)
        callback = after_sending(claimed, Sent(500), now, 0.0)
        if callback.state is CallbackState.PENDING:
            pauses.append((callback.next_at - now).total_seconds())
            now = callback.next_at
    assert tuple(pauses) == BACKOFF_S
    assert (callback.state, callback.attempts) == (CallbackState.GIVEN_UP, len(BACKOFF_S) + 1)
    assert (callback.last_error, callback.finished_at) == ("answered with status 500", now)


@pytest.mark.parametrize(
    ("sent", "state"),
    [
        (Sent(200), CallbackState.DELIVERED), (Sent(204), CallbackState.DELIVERED), (Sent(302), CallbackState.PENDING),
        (Sent(404), CallbackState.PENDING), (Sent(410), CallbackState.GIVEN_UP),
        (Sent(error="the callback_url does not answer"), CallbackState.PENDING),
        (Sent(error="the callback_url leads to a private address", final=True), CallbackState.GIVEN_UP),
    ],
)  # fmt: skip
def test_what_ends_the_sending(sent: Sent, state: CallbackState) -> None:
    """AUTH-5: a 2xx takes it; a redirect is not followed; 410 and a forbidden address end it at once."""
    assert after_sending(replace(made(), attempts=1), sent, START, 0.0).state is state


def test_pauses_are_spread() -> None:
    """AUTH-5: messages that failed together are not all sent again in one moment."""
    later = after_sending(replace(made(), attempts=1), Sent(500), START, 0.5)
    assert later.next_at == START + timedelta(seconds=5.25)
