"""Providers that refuse, fail, lose answers and recover, seen through the public views."""

from typing import Any

from tests.e2e.conftest import layout
from tests.support import books
from tests.support.stack import Stack
from tests.support.visitor import gap_free, until

pytestmark = layout("seven-processes")

LADDER = [1, 2, 4, 6, 8]
"""Slots of a Supply of eight after each of five successes: probing, 25 %, 50 %, 75 %, all."""
KEPT = ("state", "epoch", "samples", "success_rate")


async def tries(stack: Stack, run_id: str) -> list[tuple[str, str | None]]:
    """(Supply, fault code) of every Attempt of a Run."""
    attempts = (await stack.api.task_of(run_id))["attempts"]
    return [(item["supply"], item["error"] and item["error"]["code"]) for item in attempts]


async def health_facts(stack: Stack, *parts: str) -> list[Any]:
    """What must not change when nothing happened to a Supply."""
    lines = [await stack.api.health_of("supplies", f"{part}/clip") for part in parts]
    return [[line[name] for name in KEPT] for line in lines]


async def test_a_moderation_refusal_switches_nothing_and_harms_nobody(stack: Stack) -> None:
    """ATT-2, ERR-1, HLT-5: a refused prompt or result is the request's fault: one Attempt, health as it was."""
    assert (await stack.api.finished(await stack.api.post_run("proper", "a meadow")))["status"] == "succeeded"
    await until(lambda: stack.api.health_of("supplies", "prim/clip"), lambda line: line["samples"] > 0)
    before = await health_facts(stack, "prim", "prim-spare")
    for marker in ("[moderated]", "[moderated-late]"):
        run_id = await stack.api.post_run("proper", f"{marker} a forbidden scene")
        run = await stack.api.finished(run_id)
        error = run["error"]
        assert (run["status"], error["code"], error["category"]) == ("failed", "content_rejected", "content")
        assert error["retryable"] is False
        assert await tries(stack, run_id) == [("prim/clip", "content_rejected")]
        gap_free(await stack.api.events_of(run_id))
    # One more success proves that whatever the refusals had to tell was told before it.
    await stack.api.finished(await stack.api.post_run("proper", "another meadow"))
    seen = await until(
        lambda: stack.api.health_of("supplies", "prim/clip"), lambda line: line["samples"] > before[0][2]
    )
    assert (seen["state"], seen["samples"], seen["success_rate"]) == ("healthy", before[0][2] + 1, before[0][3])
    assert (await health_facts(stack, "prim-spare"))[0] == before[1]


async def test_a_revoked_key_costs_one_switch_and_opens_the_channel(stack: Stack) -> None:
    """ATT-1, ATT-2, HLT-8: a dead key is the Channel's fault: the next Supply serves, and later ones at once."""
    await stack.lab.account("revoked", revoked=True)
    run_id = await stack.api.post_run("guarded", "the hero shot")
    run = await stack.api.finished(run_id)
    assert (run["status"], run["usage"]["attempts"]) == ("succeeded", 2)
    assert await tries(stack, run_id) == [("revoked/clip", "key_invalid"), ("spare/clip", None)]
    channel = await stack.api.health_of("channels", "revoked")
    assert (channel["state"], bool(channel["reason"])) == ("circuit_open", True)
    later = await stack.api.post_run("guarded", "the next shot")
    await stack.api.finished(later)
    assert await tries(stack, later) == [("spare/clip", None)]
    fates = {item["supply"]: (item["fate"], item["step"], item["reason"]) for item in await last_round(stack, later)}
    assert fates == {"revoked/clip": ("dropped", "SEL-8", "circuit_open"), "spare/clip": ("chosen", None, None)}
    await the_event_is_named(stack, run_id, later)
    await the_alert_is_seen_once(stack, "revoked")


async def the_event_is_named(stack: Stack, causing: str, refused: str) -> None:
    """SEL-24, HLT-12: the later refusal leads to the event that opened the channel, and that to its attempt."""
    guilty = (await stack.api.task_of(causing))["attempts"][0]["id"]
    task_id = (await stack.api.task_of(refused))["id"]
    (refusal,) = (await stack.api.get(f"/v1/operator/tasks/{task_id}/explanation"))["refusals"]
    assert (refusal["supply"], refusal["sort"], refusal["id"]) == ("revoked/clip", "channel", "revoked")
    cause = refusal["cause"]
    assert (cause["kind"], cause["reason"], cause["attempt_id"]) == ("opened", "key_invalid", guilty)
    then = await stack.api.get("/v1/operator/channels/revoked/health", at=refusal["decided_at"])
    assert (then["state"], then["cause"]["sequence"]) == ("circuit_open", cause["sequence"])


async def the_alert_is_seen_once(stack: Stack, subject: str) -> None:
    """OPS-6: acknowledged, an alert leaves the open ones and stays on record."""

    async def alerts(**filters: str) -> list[dict[str, Any]]:
        found = await stack.api.get("/v1/operator/alerts", subject=subject, kind="breaker_opened", **filters)
        return list(found["alerts"])

    (alert,) = await until(lambda: alerts(open="true"), len)
    await stack.api.call("POST", f"/v1/operator/alerts/{alert['id']}:acknowledge")
    assert await alerts(open="true") == []
    assert [item["id"] for item in await alerts()] == [alert["id"]]


async def last_round(stack: Stack, run_id: str) -> list[dict[str, Any]]:
    """The candidates of the newest selection round."""
    candidates: list[dict[str, Any]] = (await stack.api.selections_of(run_id))[-1]["candidates"]
    return candidates


async def test_three_failures_open_a_supply_and_five_successes_heal_it(stack: Stack) -> None:
    """HLT-1, HLT-2, HLT-3, HLT-8, ATT-3a: three 500s in a row open the circuit; it heals by 1, 2, 4, 6 of 8 slots."""
    await stack.lab.script("ladder", {"status": 500}, repeat=3)
    stubborn = [await stack.api.post_run("ladder", f"stubborn {number}") for number in range(2)]

    async def supply() -> dict[str, Any]:
        return await stack.api.health_of("supplies", "ladder/clip")

    def further(line: dict[str, Any]) -> bool:
        return line["state"] == "healthy" or line["recovery_successes"] > seen[-1]["recovery_successes"]

    opened = await until(supply, lambda line: line["state"] == "circuit_open")
    assert opened["reason"]
    assert opened["cooldown_until"]
    seen = [await until(supply, lambda line: line["state"] != "circuit_open")]
    ends = sorted(run["status"] for run in await stack.api.all_finished(stubborn))
    assert ends == ["failed", "succeeded"]
    seen.append(await supply())  # one success further, if that one was no late word from before
    while seen[-1]["state"] != "healthy":
        await stack.api.finished(await stack.api.post_run("ladder", f"healing {len(seen)}"))
        seen.append(await until(supply, further))
    assert list(dict.fromkeys(line["effective_concurrency"] for line in seen)) == LADDER


async def test_a_lost_answer_is_found_and_never_sent_again(stack: Stack) -> None:
    """ATT-5, ATT-6: the provider took the job, the answer was lost: one submission, one Attempt, the result arrives."""
    await stack.lab.script("lossy", {"drop_after_body": True})
    run_id = await stack.api.post_run("lossy", "the lost letter")
    run = await stack.api.finished(run_id)
    (attempt,) = (await stack.api.task_of(run_id))["attempts"]
    assert (run["status"], attempt["state"], attempt["number"]) == ("succeeded", "succeeded", 1)
    ledger = await stack.lab.ledger("lossy")
    (job,) = ledger["submissions"]
    assert (job["client_token"], job["provider_task_id"]) == (attempt["client_token"], attempt["provider_task_id"])
    assert ledger["posts"]["by_client_token"] == {attempt["client_token"]: 1}
    assert (await stack.api.get("/v1/operator/uncertain"))["attempts"] == []
    gap_free(await stack.api.events_of(run_id))


async def test_the_books_agree(stack: Stack) -> None:
    """VER-7: whatever broke, every accepted job is one Attempt of ours and nothing was sent twice."""
    await books.agree(stack)
