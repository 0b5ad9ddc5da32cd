"""The main road, in both layouts: a clip from the request to its bytes, a burst, tiers, cancels. Real providers."""

import asyncio
import hashlib

import imageio_ffmpeg

from tests.e2e.pictures import picture, sound
from tests.support import books
from tests.support.stack import Stack
from tests.support.visitor import FIXED, gap_free, until

BURST = 20
FREE = {"five/clip": 5, "eight/clip": 8, "three/clip": 3}


async def decoded(content: bytes) -> tuple[int, bytes]:
    """ffmpeg's exit code and complaints over a whole decoding."""
    options = ("-v", "error", "-i", "pipe:0", "-f", "null", "-")
    process = await asyncio.create_subprocess_exec(
        imageio_ffmpeg.get_ffmpeg_exe(), *options, stdin=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    _, complaints = await process.communicate(content)
    return process.returncode or 0, complaints


async def test_a_clip_from_request_to_bytes(stack: Stack) -> None:
    """EDG-4, EVENT-1, OPS-2: 202 with a Location, then every view of the Run tells the same story to its end."""
    body = {"model": "steady", "input": {"prompt": "a lake at dawn", **FIXED, "first_frame": picture(1)}}
    made = await stack.api.ask("POST", "/v1/runs", json=body | {"labels": {"scene": "7"}})
    run_id = made.json["id"]
    assert (made.status, made.headers["location"]) == (202, f"/v1/runs/{run_id}")
    assert made.json["status"] == "pending"
    run = await stack.api.get(f"/v1/runs/{run_id}/join", timeout_s=30)
    assert run == await stack.api.run(run_id)
    assert (run["status"], run["error"], run["labels"]) == ("succeeded", None, {"scene": "7"})
    assert run["usage"] == {"cost": {"currency": "CNY", "amount": "4.00"}, "attempts": 1, "supply": "steady/clip"}
    assert run["result"]["degraded"] is False
    assert run_id in [item["id"] for item in (await stack.api.get("/v1/runs", label="scene=7"))["runs"]]
    task = await stack.api.task_of(run_id)
    (attempt,) = task["attempts"]
    assert (task["status"], task["run_id"], attempt["state"]) == ("succeeded", run_id, "succeeded")
    assert attempt["cost"] == attempt["quote"] == {"currency": "CNY", "amount": "4.00"}
    assert [job["provider_task_id"] for job in await stack.lab.submissions("steady")] == [attempt["provider_task_id"]]
    events = await stack.api.events_of(run_id)
    gap_free(events)
    kinds = [event["kind"] for event in events if event["kind"] != "node_waiting"]
    assert kinds[:4] == ["run_created", "run_started", "node_ready", "node_started"]
    assert kinds[4:] == ["attempt_started", "attempt_finished", "artifact_written", "node_completed", "run_completed"]


async def test_the_bytes_of_a_clip(stack: Stack) -> None:
    """OPS-1: a real clip: its digest is its name, it can be read in parts, and ffmpeg decodes all of it."""
    run = await stack.api.finished(await stack.api.post_run("steady", "a kite over the dunes"))
    (artifact,) = run["result"]["artifacts"]
    whole = await stack.api.ask("GET", artifact["url"])
    assert (whole.status, whole.headers["content-type"]) == (200, "video/mp4")
    assert hashlib.sha256(whole.body).hexdigest() == artifact["sha256"]
    assert len(whole.body) == artifact["bytes"]
    part = await stack.api.ask("GET", artifact["url"], headers={"Range": "bytes=100-199"})
    assert (part.status, part.body) == (206, whole.body[100:200])
    assert part.headers["content-range"] == f"bytes 100-199/{artifact['bytes']}"
    tail = await stack.api.ask("GET", artifact["url"], headers={"Range": "bytes=-50"})
    assert (tail.status, tail.body) == (206, whole.body[-50:])
    beyond = await stack.api.ask("GET", artifact["url"], headers={"Range": "bytes=99999999-"})
    assert beyond.status == 416
    assert await decoded(whole.body) == (0, b"")


async def test_every_choice_is_on_record(stack: Stack) -> None:
    """SEL-16, SEL-24: four steps, and the fate of every bound Supply with the figures that decided."""
    run_id = await stack.api.post_run("burst", "a train in the snow")
    await stack.api.finished(run_id)
    last = (await stack.api.selections_of(run_id))[-1]
    assert len(last["steps"]) == 4
    assert (last["chosen"], last["tier"]) == ("five/clip", "exact")
    assert [(item["supply"], item["fate"], item["rank"]) for item in last["candidates"]] == [
        ("five/clip", "chosen", 1),
        ("eight/clip", "ranked", 2),
        ("three/clip", "ranked", 3),
    ]
    assert last["baseline"] == {"currency": "CNY", "amount": "4.00"}
    for candidate in last["candidates"]:
        assert candidate["quote"] == {"currency": "CNY", "amount": "4.00"}
        assert candidate["free_slots"] > 0


async def test_twenty_against_sixteen_slots(stack: Stack) -> None:
    """CAP-10, ATT-10: 20 queued against 5 + 8 + 3 free slots: 16 run, 4 wait and say why, a release frees the next."""
    parts = [name.removesuffix("/clip") for name in FREE]
    for part in parts:
        await stack.lab.account(part, running=0)
    already = len(await stack.lab.submissions())
    runs = await asyncio.gather(*(stack.api.post_run("burst", f"shot {number}") for number in range(BURST)))
    await until(stack.api.slots, lambda used: {name: used[name] for name in FREE} == FREE)
    await until(stack.lab.submissions, lambda jobs: len(jobs) == already + 16)

    async def reasons() -> list[str]:
        found = await asyncio.gather(*(stack.api.waiting_reason(run_id) for run_id in runs))
        return [reason for reason in found if reason]

    waiting = await until(reasons, lambda found: len(found) == BURST - 16 and all("capacity" in it for it in found))
    assert len(await stack.lab.submissions()) == already + 16, waiting
    await stack.lab.account("three", running=1)  # its three jobs end one after the other
    await until(stack.lab.submissions, lambda jobs: len(jobs) > already + 16, within_s=5)
    for part in parts:
        await stack.lab.account(part, running=60)
    done = await stack.api.all_finished(list(runs))
    assert [(run["status"], run["usage"]["attempts"]) for run in done] == [("succeeded", 1)] * BURST
    assert len(await stack.lab.submissions()) == already + BURST


async def test_a_degraded_result_says_so_and_a_strict_request_does_not_degrade(stack: Stack) -> None:
    """TIER-1, TIER-2, TIER-6: with the exact Supply out, 933 becomes 900 and says so; strict requests wait for it."""
    clip = (await stack.api.finished(await stack.api.post_run("steady", "a reference")))["result"]["artifacts"][0]
    given = {
        "reference_images": [picture(number) for number in range(9)],
        "reference_videos": [{"artifact": clip["sha256"]}] * 3,
        "reference_audios": [sound(number) for number in range(3)],
    }
    strict = {"degradation": "strict"}
    await stack.lab.script("exact", {"status": 401})  # opens the whole channel for its cooldown
    degraded = await stack.api.finished(await stack.api.post_run("whole", "all of them", **given))
    patient = await stack.api.post_run("whole", "all of them, strictly", options=strict, **given)
    hasty = await stack.api.post_run("whole", "strictly and soon", options=strict | {"deadline_s": 1}, **given)
    assert degraded["status"] == "succeeded", degraded["error"]
    assert degraded["usage"]["supply"] == "lesser/clip"
    assert {name: value for name, value in degraded["result"].items() if name not in {"artifacts", "output"}} == {
        "degraded": True,
        "requested_profile": "933",
        "actual_profile": "900",
        "dropped_inputs": ["reference_videos", "reference_audios"],
    }
    reason = await until(lambda: stack.api.waiting_reason(patient), lambda reason: reason and "health" in reason)
    late = await stack.api.finished(hasty)
    whole = await stack.api.finished(patient)
    assert (late["status"], late["error"]["code"]) == ("timed_out", "deadline_exceeded"), reason
    assert (whole["status"], whole["usage"]["supply"]) == ("succeeded", "exact/clip"), whole
    assert (whole["result"]["degraded"], whole["result"]["dropped_inputs"]) == (False, [])
    fates = {item["supply"]: item["reason"] for item in (await stack.api.selections_of(patient))[0]["candidates"]}
    assert fates == {"exact/clip": "circuit_open", "lesser/clip": "strict"}
    kinds = {alert["kind"] for alert in (await stack.api.get("/v1/operator/alerts"))["alerts"]}
    assert {"exact_supply_unavailable", "degradation_in_use"} <= kinds


async def test_a_cancel_before_submission_never_reaches_the_provider(stack: Stack) -> None:
    """ATT-8: a Run that waits for a slot is cancelled without the provider hearing of it."""
    await stack.lab.account("single", running=0)
    holder = await stack.api.post_run("single", "holds the only slot")
    await until(lambda: stack.lab.submissions("single"), len)
    waiting = await stack.api.post_run("single", "waits for it")
    await until(lambda: stack.api.waiting_reason(waiting), lambda reason: reason and "capacity" in reason)
    asked = await stack.api.ask("POST", f"/v1/runs/{waiting}/cancel")
    assert asked.status == 202
    run = await stack.api.finished(waiting)
    assert (run["status"], run["usage"]["attempts"]) == ("cancelled", 0)
    gap_free(await stack.api.events_of(waiting))
    assert (await stack.lab.ledger("single"))["posts"]["count"] == 1
    await stack.lab.account("single", running=1)
    assert (await stack.api.finished(holder))["status"] == "succeeded"


async def test_a_cancel_after_submission_stops_the_job(stack: Stack) -> None:
    """ATT-8: a job that the provider has queued is cancelled there; nothing is charged and the slot is free again."""
    await stack.lab.account("lossy", running=0)
    run_id = await stack.api.post_run("lossy", "never to be drawn")
    await until(lambda: stack.lab.submissions("lossy"), len)
    await stack.api.call("POST", f"/v1/runs/{run_id}/cancel")
    run = await stack.api.finished(run_id)
    (job,) = await stack.lab.submissions("lossy")
    assert (run["status"], job["status"], job["charged"]["amount"]) == ("cancelled", "cancelled", "0.00")
    again = await stack.api.ask("POST", f"/v1/runs/{run_id}/cancel")
    assert again.status in {202, 409}
    await until(stack.api.slots, lambda used: used["lossy/clip"] == 0)
    gap_free(await stack.api.events_of(run_id))


async def test_the_books_agree(stack: Stack) -> None:
    """VER-7, SEL-25: every job in the providers' ledger is one Attempt of ours, and nothing was sent twice."""
    await books.agree(stack)
