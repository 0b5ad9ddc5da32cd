"""What operators ask about the past: alerts they have seen, states that were, refusals and their causes."""

from typing import Any

import pytest

from cli import output
from cli.commands.alerts import alerts
from cli.commands.channel import channel
from cli.commands.explain import explain
from cli.commands.health import health
from cli.commands.run import run
from cli.commands.supply import supply
from tests.unit.cli.fake_server import FakeServer, a_run, a_task, invoke, problem

ALERT = {
    "id": "A1", "kind": "stuck_state", "severity": "high", "subject": "T1", "count": 2, "message": "nobody takes it",
    "created_at": "2026-01-31T09:30:00Z", "acknowledged_at": None,
}  # fmt: skip
EVENT = {
    "sequence": 2, "kind": "opened", "from_state": "healthy", "to_state": "circuit_open", "epoch": 2,
    "recovery_successes": 0, "reason": "key_invalid", "attempt_id": "T7", "observed_at": "2026-01-31T09:30:00Z",
}  # fmt: skip
PAST = {
    "id": "a", "sort": "channel", "state": "circuit_open", "reason": "key_invalid", "since": "2026-01-31T09:30:00Z",
    "cooldown_until": "2026-01-31T09:35:00Z", "recovery_successes": 0, "epoch": 2, "revision": 3, "cause": EVENT,
    "events": [EVENT],
}  # fmt: skip


class Asking(FakeServer):
    """A server that keeps the queries too."""

    async def call(self, method: str, path: str, **given: Any) -> dict[str, Any]:
        """As the fake, with the query in the place of the body."""
        return await super().call(method, path, body=given.get("query"))


def test_open_alerts_are_the_default() -> None:
    """OPS-6, OPS-8: what was seen is left out unless it is asked for."""
    server = Asking({"/v1/operator/alerts": {"alerts": [ALERT]}})
    assert "nobody takes it" in invoke(alerts, server).output
    assert invoke(alerts, server, "--all", "--subject", "T1").exit_code == 0
    assert [query for _, _, query in server.asked] == [{"open": "true"}, {"subject": "T1"}]


def test_an_alert_tells_what_was_measured() -> None:
    """SLO-2, OPS-8: the newest value, what it was held against, and where it goes; in the order of the server."""
    measure = {"figure": "cost", "unit": "CNY", "value": 1.5, "baseline": 1.0, "trend": "rising", "values": [1.5]}
    dear = {**ALERT, "id": "A2", "message": "dear", "measure": measure}
    said = invoke(alerts, Asking({"/v1/operator/alerts": {"alerts": [{**ALERT, "measure": None}, dear]}})).output
    words = " ".join(said.replace("│", " ").split())
    assert "rising" in words
    assert words.index("nobody takes it") < words.index("dear")


def test_alerts_are_acknowledged_by_id() -> None:
    """OPS-6, OPS-8: one or several; an id that never was ends with the server's refusal."""
    server = FakeServer({"/v1/operator/alerts/A1:acknowledge": ALERT})
    said = invoke(alerts, server, "ack", "A1")
    assert (said.exit_code, said.output) == (0, "seen: stuck_state of T1\n")
    assert [(method, path) for method, path, _ in server.asked] == [("POST", "/v1/operator/alerts/A1:acknowledge")]
    assert invoke(alerts, server, "ack", "A1", "A2").exit_code == output.REFUSED
    assert invoke(alerts, server, "ack").exit_code == output.WRONG_USE


def test_health_says_since_when_why_and_until_when() -> None:
    """OPS-8: each state with its reason, its beginning and the end of its cooldown."""
    item = {
        "id": "a/x", "state": "circuit_open", "since": "2026-01-31T09:30:00Z", "reason": "key_invalid",
        "cooldown_until": "2026-01-31T09:35:00Z", "recovery_successes": 0, "effective_concurrency": 0,
        "success_rate": None, "success_rate_low": None, "success_rate_high": None, "samples": 0,
    }  # fmt: skip
    said = invoke(health, FakeServer({"/v1/operator/health": {"channels": [], "supplies": [item]}})).output
    for word in ("09:30:00Z", "key_invalid", "09:35:00Z"):
        assert word in said


def test_a_state_of_the_past_is_explained() -> None:
    """OPS-8: the Supply of that id, else the Channel; the event that brought it there, and who caused it."""
    server = Asking({"/v1/operator/channels/a/health": PAST})
    said = invoke(health, server, "explain", "a", "--at", "2026-01-31T09:31:00Z")
    assert "channel a was circuit_open since 2026-01-31T09:30:00Z, not to be tried before 2026-01-31T09:35:00Z" in (
        said.output
    )
    assert "because of opened (key_invalid) at 2026-01-31T09:30:00Z by attempt T7" in said.output
    assert server.asked[-1][2] == {"at": "2026-01-31T09:31:00Z"}
    assert "channel a is circuit_open" in invoke(health, server, "explain", "a").output


def test_an_operator_closes_and_opens_a_circuit() -> None:
    """OPS-8: by the id alone, with a reason for the record; what is told is the state after it."""
    after = {**PAST, "state": "healthy", "cooldown_until": None}
    server = FakeServer(
        {"/v1/operator/channels/a:close-circuit": after, "/v1/operator/supplies/a%2Fx:open-circuit": PAST}
    )
    said = invoke(health, server, "close", "a", "--reason", "the key is back")
    assert (said.exit_code, said.output) == (0, "a is healthy\n")
    assert server.asked[-1] == ("POST", "/v1/operator/channels/a:close-circuit", {"reason": "the key is back"})
    assert "is circuit_open, not to be tried before" in invoke(health, server, "open", "a/x").output
    assert "no channel and no supply 'z' is known" in invoke(health, server, "close", "z").stderr


@pytest.mark.parametrize("verb, admin", [("enable", "enabled"), ("disable", "disabled"), ("drain", "draining")])
def test_an_operator_takes_something_in_and_out_of_use(verb: str, admin: str) -> None:
    """CAT-5, OPS-8: a Channel or a Supply, until the next word."""
    told = {"id": "a", "revision": 7, "spec": {"admin": admin}}
    server = FakeServer({f"/v1/operator/channels/a:{verb}": told, f"/v1/operator/supplies/a%2Fx:{verb}": told})
    said = invoke(channel, server, verb, "a", "--reason", "the bill")
    assert (said.exit_code, said.output) == (0, f"a is {admin} since revision 7\n")
    assert server.asked[-1][2] == {"reason": "the bill"}
    assert f"a/x is {admin}" in invoke(supply, server, verb, "a/x").output
    assert invoke(supply, server, verb, "z").exit_code == output.REFUSED


def test_what_was_not_there_is_said_once() -> None:
    """OPS-8: neither a Channel nor a Supply; with `--sort`, in the server's own words."""
    said = invoke(health, FakeServer(), "explain", "z")
    assert said.exit_code == output.REFUSED
    assert "no channel and no supply 'z' is known" in said.stderr
    assert "next:  `pointsman run list`, `pointsman health`" in said.stderr
    then = invoke(health, FakeServer(), "explain", "z", "--at", "2026-01-31T09:30:00Z")
    assert "no channel and no supply 'z' was known then" in then.stderr
    server = FakeServer({"/v1/operator/supplies/z/health": problem("not_found", detail="not declared")})
    assert "not declared" in invoke(health, server, "explain", "z", "--sort", "supply").stderr


def test_explain_names_the_event_behind_a_refusal() -> None:
    """SEL-24, OPS-8: under its round; a key that may not ask goes without."""
    fate = {
        "supply": "a/x", "tier": "exact", "fate": "dropped", "step": "SEL-8", "reason": "circuit_open", "figures": "",
        "quote": None, "health": "circuit_open", "free_slots": None,
    }  # fmt: skip
    selection = {"round": 1, "chosen": None, "tier": "", "steps": ["s"], "baseline": None, "candidates": [fate]}
    answers: dict[str, Any] = {
        "/v1/tasks/T1": a_task(),
        "/v1/tasks/T1/selections": {"selections": [selection]},
        "/v1/operator/tasks/T1/explanation": problem("forbidden", 403),
    }
    assert "refused" not in invoke(explain, FakeServer(answers), "T1").output
    refusal = {"round": 1, "supply": "a/x", "sort": "channel", "id": "a", "state": "circuit_open", "cause": EVENT}
    answers["/v1/operator/tasks/T1/explanation"] = {"refusals": [refusal, {**refusal, "round": 2}]}
    said = invoke(explain, FakeServer(answers), "T1").output
    words = "a/x was refused: channel a was circuit_open because of opened (key_invalid) at 2026-01-31T09:30:00Z"
    assert said.count(words) == 1


def test_a_run_shows_what_was_heard_of_late() -> None:
    """COST-12, OPS-8: the provider's later word stands under the attempts, with what it delivered."""
    file = {"sha256": "0", "media_type": "video/mp4", "bytes": 1, "url": "/v1/artifacts/0"}
    late = {
        "outcome": "succeeded", "heard_at": "2026-01-31T10:30:00Z", "artifacts": [file], "error": None,
        "cost_before": {"currency": "CNY", "amount": "6.00"},
    }  # fmt: skip
    item = {
        "number": 1, "supply": "a/x", "state": "failed", "quote": None, "cost": {"currency": "CNY", "amount": "5.00"},
        "error": {"code": "provider_timeout"},
    }  # fmt: skip
    task = a_task(attempts=[{**item, "late": late}, {**item, "number": 2, "late": None}])
    said = invoke(run, FakeServer({"/v1/runs/R1": a_run(), "/v1/tasks/T1": task}), "show", "R1").output
    assert "attempt 1 succeeded at 2026-01-31T10:30:00Z, after it had ended; 6.00 CNY was booked until then" in said
    assert "/v1/artifacts/0" in said
    assert "attempt 2 succeeded" not in said
