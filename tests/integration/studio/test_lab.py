"""The control surface over a real socket: scripted faults, the ledger as a judge, accounts, and what a kill leaves."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from pathlib import Path

import aiohttp
import pytest

from services.studio.compose import Studio
from tests.support.waiting import eventually

TASKS = "/contents/generations/tasks"
CUT = (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError)


async def rule(caller, *then: dict, match: dict | None = None, **more) -> None:
    await caller.lab("POST", "/script", {"match": match or {"account": "aurora"}, "then": list(then), **more})


async def test_a_lost_answer_is_in_the_ledger_exactly_once(caller):
    """drop_after_body: the caller hears nothing, one job is accepted, charged and found by its token."""
    await rule(caller, {"drop_after_body": True})
    with pytest.raises(CUT):
        await caller.create(safety_identifier="tok-lost")
    told = await caller.lab("GET", "/ledger?account=aurora")
    assert [row["client_token"] for row in told["submissions"]] == ["tok-lost"]
    assert told["posts"]["by_client_token"] == {"tok-lost": 1}
    _, listed = await caller.call("GET", "aurora", TASKS)
    assert [item["safety_identifier"] for item in listed["items"]] == ["tok-lost"]
    task = await caller.finished("aurora", listed["items"][0]["id"])
    assert task["status"] == "succeeded"
    assert (await caller.lab("GET", "/ledger"))["totals"]["charged"] == {"CNY": "4.00"}


async def test_a_cut_without_acceptance_leaves_no_job(caller):
    """drop_after_body with accept false, and hang_s: silence for the caller, a refused POST in the ledger, no task."""
    await rule(caller, {"drop_after_body": True, "accept": False}, {"hang_s": 0.05})
    for _ in range(2):
        with pytest.raises(CUT):
            await caller.create(safety_identifier="tok-none")
    told = await caller.lab("GET", "/ledger")
    assert (told["totals"]["accepted"], told["refused"]["by_code"]) == (0, {"cut": 1, "hang": 1})
    assert told["posts"]["repeated"] == {"tok-none": 2}


async def test_a_hang_ends_when_the_caller_hangs_up(caller):
    """A caller that gives up after its own timeout is not waited for; with accept the job was taken on."""
    await rule(caller, {"hang_s": 600, "accept": True})
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(caller.create(), 0.3)
    assert (await caller.lab("GET", "/ledger"))["totals"]["accepted"] == 1


async def test_a_truncated_answer_breaks_in_the_middle(caller):
    """truncate: status and length are told, half the body comes, the job is accepted."""
    await rule(caller, {"truncate": True})
    with pytest.raises(aiohttp.ClientPayloadError):
        await caller.create()
    assert (await caller.lab("GET", "/ledger"))["totals"]["accepted"] == 1


async def test_the_most_jobs_at_once_are_remembered(caller):
    """VER-7: the provider's own count of simultaneous jobs, of the account and by model, outlives the jobs."""

    async def seen() -> tuple[int, dict]:
        view = await caller.lab("GET", "/accounts/aurora")
        return view["active"], view["most_at_once"]

    assert await seen() == (0, {"account": 0, "models": {}})
    await caller.lab("POST", "/accounts/aurora", {"running": 0})
    tasks = [(await caller.create())[1]["id"] for _ in range(3)]
    active, most = await seen()
    assert (active, most["account"], list(most["models"].values())) == (3, 3, [3])
    await caller.lab("POST", "/accounts/aurora", {"running": 3})
    for task in tasks:
        await caller.finished("aurora", task)
    await caller.create()
    assert (await seen())[1] == most


async def test_scripted_statuses_speak_the_accounts_dialect(caller):
    """A bare status gets the dialect's own code; headers and a body of one's own are sent as given."""
    odd = {"status": 418, "body": {"odd": 1}}
    await rule(caller, {"status": 429, "retry_after": 2}, {"status": 500}, odd, {"ok": True})
    headers = {"Authorization": f"Bearer {caller.studio.key('aurora')}"}
    async with caller.session.post(caller.studio.base_url("aurora") + TASKS, json={}, headers=headers) as answer:
        assert (answer.status, answer.headers["retry-after"]) == (429, "2")
        assert (await answer.json())["error"]["code"] == "ServerOverloaded"
    status, body = await caller.create()
    assert (status, body["error"]["code"]) == (500, "InternalServiceError")
    assert await caller.create() == (418, {"odd": 1})
    assert (await caller.create())[0] == 200
    await rule(caller, {"status": 503}, match={"account": "dahlia", "path": "/models"})
    status, body = await caller.call("GET", "dahlia", "/models")
    assert (status, body["error"]["code"]) == (503, "slow_down")


async def test_a_script_can_choose_the_end_of_a_task(caller):
    """fail_task and expire_task: accepted, then ended as told, without a charge."""
    await rule(caller, {"fail_task": {"code": "InternalServiceError", "message": "broken"}}, {"expire_task": True})
    failed, expired = [(await caller.create())[1]["id"] for _ in range(2)]
    task = await caller.finished("aurora", failed)
    assert (task["status"], task["error"]) == ("failed", {"code": "InternalServiceError", "message": "broken"})
    assert (await caller.finished("aurora", expired))["status"] == "expired"
    assert (await caller.lab("GET", "/ledger"))["totals"]["charged"] == {}


async def test_a_poll_can_be_made_to_fail_by_its_task(caller):
    """A rule on GET knows the model and prompt of the task that is asked for."""
    _, created = await caller.create(prompt="the unlucky one")
    match = {"account": "aurora", "method": "GET", "prompt_contains": "unlucky"}
    await rule(caller, {"status": 500}, match=match, repeat=2)
    answers = [(await caller.call("GET", "aurora", f"{TASKS}/{created['id']}"))[0] for _ in range(3)]
    assert answers == [500, 500, 200]
    assert (await caller.lab("GET", "/ledger"))["refused"]["count"] == 0


async def test_rules_can_be_seen_and_taken_away(caller):
    """GET shows each rule with its use; DELETE takes one or all; a misspelt rule is a 400."""
    await rule(caller, {"status": 500}, repeat="forever")
    await caller.create()
    rules = (await caller.lab("GET", "/script"))["rules"]
    assert [(item["used"], item["done"]) for item in rules] == [(1, False)]
    await caller.lab("DELETE", f"/script/{rules[0]['id']}")
    assert (await caller.create())[0] == 200
    await rule(caller, {"status": 500})
    await caller.lab("DELETE", "/script")
    assert (await caller.create())[0] == 200
    async with caller.session.post(f"{caller.studio.url}/lab/script", json={"then": [{"statsu": 500}]}) as answer:
        assert answer.status == 400
        assert "statsu" in (await answer.json())["error"]


async def test_a_revoked_key_is_refused_until_it_is_restored(caller):
    """Revoking stops everything under the key, polls too; a new key is the only one that works."""
    _, created = await caller.create()
    await caller.lab("POST", "/accounts/aurora", {"revoked": True})
    assert (await caller.create())[0] == 401
    assert (await caller.call("GET", "aurora", f"{TASKS}/{created['id']}"))[0] == 401
    await caller.lab("POST", "/accounts/aurora", {"revoked": False, "key": "another"})
    assert (await caller.create())[0] == 401
    await caller.lab("POST", "/accounts/aurora", {"key": caller.studio.key("aurora")})
    assert (await caller.create())[0] == 200
    async with caller.session.post(f"{caller.studio.url}/lab/accounts/aurora", json={"sped": 2}) as answer:
        assert answer.status == 400


async def test_reset_forgets_everything(caller):
    """After a reset: no ledger, no tasks, no rules, the configured accounts, and work goes on."""
    await caller.lab("POST", "/accounts/aurora", {"concurrency": 1, "running": 0})
    await caller.create()
    await rule(caller, {"status": 500})
    await caller.lab("POST", "/reset")
    assert (await caller.lab("GET", "/ledger"))["posts"]["count"] == 0
    assert (await caller.lab("GET", "/script"))["rules"] == []
    _, created = await caller.create()
    assert (await caller.finished("aurora", created["id"]))["status"] == "succeeded"
    assert (await caller.call("GET", "aurora", TASKS))[1]["total"] == 1


async def test_a_restart_keeps_the_ledger_and_ends_every_task(config, caller_of, tmp_path):
    """Finished tasks and their files stay; running ones are rendered again, queued ones wait on; nothing doubles."""
    data = tmp_path / "studio"
    async with Studio(config, data) as studio, aiohttp.ClientSession() as session:
        caller = caller_of(studio, session)
        done = (await caller.create())[1]["id"]
        await caller.finished("aurora", done)
        await caller.lab("POST", "/accounts/aurora", {"running": 1, "render_s": 600})
        running, queued = [(await caller.create())[1]["id"] for _ in range(2)]
        await caller.task("aurora", running, lambda task: task["status"] == "running")
        before = await caller.lab("GET", "/ledger")
    async with Studio(config, data) as studio, aiohttp.ClientSession() as session:
        caller = caller_of(studio, session)
        for task_id in (done, running, queued):
            task = await caller.finished("aurora", task_id)
            assert task["status"] == "succeeded"
            async with session.get(task["content"]["video_url"]) as answer:
                assert answer.status == 200
        after = await caller.lab("GET", "/ledger")
    assert [row["id"] for row in after["submissions"]] == [row["id"] for row in before["submissions"]]
    assert after["totals"]["charged"] == {"CNY": "12.00"}


async def test_two_studios_cannot_share_one_folder(config, tmp_path):
    """A second studio on the same data would render and charge the same tasks again: it does not start."""
    async with Studio(config, tmp_path / "studio"):
        with pytest.raises(OSError, match="another studio"):
            await Studio(config, tmp_path / "studio").start()


@contextlib.asynccontextmanager
async def process(data: Path, ready: Path):
    """The studio as `python -m services.studio`; killed at the end if it still runs."""
    ready.unlink(missing_ok=True)
    arguments = ["--port-base", "0", "--data", str(data), "--ready-file", str(ready), "--exit-with-parent"]
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "services.studio", *arguments, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        await eventually(ready.exists)
        yield child, json.loads(ready.read_text())
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()


async def test_a_kill_loses_nothing_and_a_term_ends_with_zero(tmp_path):
    """kill -9 right after an answer: the next process has the job and ends it. SIGTERM exits 0."""
    data, ready = tmp_path / "studio", tmp_path / "ready"
    headers = {"Authorization": "Bearer studio-key-aurora"}
    body = {"model": "doubao-seedance-2-0-260128", "content": [{"type": "text", "text": "a storm"}], "duration": 4}
    async with aiohttp.ClientSession(headers=headers) as session:
        async with process(data, ready) as (child, told):
            async with session.post(told["base_urls"]["aurora"] + TASKS, json=body) as answer:
                task_id = (await answer.json())["id"]
            os.kill(child.pid, signal.SIGKILL)
            await child.wait()
        async with process(data, ready) as (child, told):
            async with session.get(told["url"] + "/lab/ledger") as answer:
                assert [row["provider_task_id"] for row in (await answer.json())["submissions"]] == [task_id]
            status = "queued"
            while status in ("queued", "running"):
                async with session.get(f"{told['base_urls']['aurora']}{TASKS}/{task_id}") as answer:
                    status = (await answer.json())["status"]
                await asyncio.sleep(0.02)
            assert status == "succeeded"
            child.send_signal(signal.SIGTERM)
            assert await child.wait() == 0
