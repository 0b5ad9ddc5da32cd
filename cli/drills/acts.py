"""The drills. Each puts work on the stage, does one harm, lets it be mended as it would be, and measures."""

import hashlib
import shutil
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from cli.api import Api, Problem, Unreachable
from cli.demo.requests import channel_health, clip, task_of
from cli.drills.theatre import Theatre, copy_tree

STILL = {"prompt": "a lighthouse at dawn", "size": "1280x720"}
PATIENCE_S = 2
"""How long the absent reviewer is waited for."""
FETCHES = 3
"""How often a result cannot be fetched."""
CIRRUS_SLOTS, WAITING = 3, 2
"""Jobs that its Supply takes at once, and Tasks that wait beside them."""
UNAUTHENTICATED = 401
REFUSED, WHOLE, DAMAGED = "is refused", "gets its bytes", "gets others"


async def provider_timeout(theatre: Theatre) -> None:
    """A provider takes a job and never answers: its records are asked, and nobody else gets the job."""
    await theatre.script({"account": "cirrus"}, {"hang_s": 30, "accept": True})
    began = theatre.now
    run_id = await theatre.create("clip-cirrus", clip("the lost letter"))

    async def reason() -> str:
        return (await theatre.run(run_id))["nodes"][0]["waiting_reason"] or ""

    await theatre.until(reason, lambda told: told.startswith("uncertain"), "the doubt is told")
    theatre.report.noticed_s = theatre.now - began
    (run,) = await theatre.rested(run_id)
    theatre.report.recovery_s = theatre.now - began
    theatre.report.facts.equal("the job that was never answered has a result", run["status"], "succeeded")
    theatre.report.facts.equal("by one attempt", len((await task_of(theatre.api, run))["attempts"]), 1)


async def upload_failure(theatre: Theatre) -> None:
    """A job is done and paid, and its file cannot be fetched for a while: it is fetched later, not made again."""
    match = {"account": "cirrus", "method": "GET", "path": "/files/"}
    await theatre.script(match, {"status": 503}, repeat=FETCHES)
    began = theatre.now
    (run,) = await theatre.rested(await theatre.create("clip-cirrus", clip("a film behind a closed door")))
    theatre.report.recovery_s = theatre.now - began
    theatre.report.facts.equal("the result was fetched in the end", run["status"], "succeeded")
    rules = (await theatre.stage.lab.get("/lab/script"))["rules"]
    theatre.report.facts.equal("fetches that failed", [rule["used"] for rule in rules], [FETCHES])
    theatre.report.facts.equal("attempts", len((await task_of(theatre.api, run))["attempts"]), 1)


async def reviewer_absent(theatre: Theatre) -> None:
    """Nobody decides a gate: its deadline is executed, the deputy is asked, and the Run goes on."""
    gate = {"id": "look", "kind": "gate", "deadline": f"{PATIENCE_S}s", "deputy": "lead"}
    still = {"id": "still", "kind": "generate", "model": "keyframe", "input": STILL, "needs": ["look"]}
    run_id = await theatre.produce(_production(gate, still))
    asked = await theatre.review(run_id)
    began = theatre.now
    told = await theatre.until(
        lambda: theatre.reviews(run_id), lambda found: bool(found[0]["escalations"]), "the deadline is executed"
    )
    theatre.report.noticed_s = theatre.now - began
    theatre.report.facts.equal("the question is the same one", told[0]["id"], asked["id"])
    theatre.report.facts.equal("who is asked now", told[0]["assignee"], "lead")
    late = theatre.report.noticed_s - PATIENCE_S
    theatre.report.facts.check("the deputy is asked within 5 s of the deadline", late < 5, f"{late:.1f} s")
    theatre.report.facts.equal("paid before anybody decided", len((await theatre.ledger())["submissions"]), 0)
    await theatre.decide(told[0], "approve")
    (run,) = await theatre.rested(run_id)
    theatre.report.recovery_s = theatre.now - began - PATIENCE_S
    theatre.report.facts.equal("the run went on", run["status"], "succeeded")


async def hash_mismatch(theatre: Theatre) -> None:
    """The bytes of an artifact are damaged in the store: a check sees it, a person is asked, and once the bytes are
    back from a backup the check alone is run again."""
    still = {"id": "still", "kind": "generate", "model": "keyframe", "input": STILL}
    gate = {"id": "look", "kind": "gate", "needs": ["still"]}
    check = {"id": "sound", "kind": "check", "needs": ["look"], "subject": "${still.artifacts}", "checks": ["decodes"]}
    run_id = await theatre.produce(_production(still, gate, check))
    asked = await theatre.review(run_id)
    sha256 = asked["artifacts"][0]["sha256"] if asked["artifacts"] else _made(await theatre.run(run_id), "still")
    file, backup = theatre.blob(sha256), theatre.stage.folder / "backup.blob"
    shutil.copy(file, backup)
    file.write_bytes(bytes(reversed(backup.read_bytes())))
    began = theatre.now
    await theatre.decide(asked, "approve")
    told = await theatre.until(
        lambda: theatre.reviews(run_id), lambda found: any(item["kind"] == "check" for item in found), "it is noticed"
    )
    theatre.report.noticed_s = theatre.now - began
    theatre.report.facts.check("the question says what is wrong", "damaged" in told[0]["cause"], told[0]["cause"])
    await _first_alert(theatre, "release_hash_changed")
    run = await theatre.run(run_id)
    theatre.report.facts.equal("the check that saw it", _states(run)["sound"], "waiting_human")
    theatre.report.facts.equal("the node that made it", _states(run)["still"], "succeeded")
    theatre.report.facts.equal("who asks for the damaged artifact", await _delivered(theatre, sha256), REFUSED)
    shutil.copy(backup, file)
    mended = theatre.now
    await theatre.api.call("POST", f"/v1/runs/{run_id}/redrive", body={"node": "sound", "reason": "bytes are back"})
    (run,) = await theatre.rested(run_id)
    theatre.report.recovery_s = theatre.now - mended
    theatre.report.facts.equal("the run ended well", run["status"], "succeeded")
    theatre.report.facts.equal("and for the mended one", await _delivered(theatre, sha256), WHOLE)
    theatre.report.facts.equal("jobs at providers", len((await theatre.ledger())["submissions"]), 1)


async def rights_revoked(theatre: Theatre) -> None:
    """An account's key is revoked with a job there, and a tenant's key with a Run under way: new work goes elsewhere,
    what was accepted is kept and delivered once the account has its key again."""
    await theatre.account("aurora", running=0)
    made = await theatre.api.call("POST", "/v1/operator/keys", body={"tenant": "drill", "scopes": ["runs"]})
    held = await theatre.create("clip", clip("held by the account"))
    await theatre.until(theatre.ledger, lambda book: len(book["submissions"]) == 1, "the account has the job")
    await theatre.account("aurora", revoked=True)
    began = theatre.now
    moved = await theatre.create("clip", clip("on its way when the key is revoked"))
    state = await theatre.until(
        lambda: channel_health(theatre.api, "aurora"), lambda seen: seen["state"] == "circuit_open", "the circuit opens"
    )
    theatre.report.noticed_s = theatre.now - began
    theatre.report.facts.check("the circuit says why", bool(state["reason"]), state["reason"])
    await _first_alert(theatre, "rights_expired")
    (run,) = await theatre.rested(moved)
    theatre.report.facts.equal("new work was done", run["status"], "succeeded")
    elsewhere = not run["usage"]["supply"].startswith("aurora")
    theatre.report.facts.check("by another account", elsewhere, run["usage"]["supply"])
    await theatre.api.call("DELETE", f"/v1/operator/keys/{made['id']}")
    theatre.report.facts.equal("a revoked caller is turned away", await _status(theatre, made["key"]), UNAUTHENTICATED)
    await theatre.account("aurora", revoked=False, running=12)
    mended = theatre.now
    (run,) = await theatre.rested(held)
    theatre.report.recovery_s = theatre.now - mended
    theatre.report.facts.equal("what the account held was delivered", run["status"], "succeeded")
    theatre.report.facts.equal("by its first attempt", run["usage"]["attempts"], 1)


async def database_restored(theatre: Theatre) -> None:
    """The database is put back to a backup: what was done stays done, what a provider had is followed, what waited in
    the queue and was sent after the backup is found there and not sent again. What came after the backup is lost, and
    named by the providers' books."""
    data, backup = theatre.stage.data / "postgres" / "data", theatre.stage.folder / "backup"
    done = await theatre.create("keyframe", STILL)
    await theatre.rested(done)
    await theatre.account("cirrus", running=0)
    clips = [await theatre.create("clip-cirrus", clip(f"take {take}")) for take in range(CIRRUS_SLOTS + WAITING)]
    await theatre.until(theatre.ledger, lambda book: len(book["submissions"]) == 1 + CIRRUS_SLOTS, "its slots are full")

    async def queued() -> int:
        reasons = [(await theatre.run(run_id))["nodes"][0]["waiting_reason"] or "" for run_id in clips]
        return sum(reason.startswith("capacity") for reason in reasons)

    await theatre.until(queued, lambda count: count == WAITING, "the others wait in the queue")
    theatre.tell("taking a backup")
    await theatre.stopped(lambda: copy_tree(data, backup))
    await theatre.account("cirrus", running=6)
    await theatre.rested(*clips)
    await theatre.rested(await theatre.create("keyframe", {**STILL, "prompt": "after the backup"}))
    theatre.tell("putting the database back")
    began = theatre.now
    await theatre.stopped(lambda: copy_tree(backup, data))
    await theatre.account("cirrus", running=6)
    first, *others = await theatre.rested(done, *clips)
    theatre.report.recovery_s = theatre.now - began
    theatre.report.facts.equal("what was done stayed done", first["status"], "succeeded")
    theatre.report.facts.equal("its picture", await _delivered(theatre, _made(first, "main")), WHOLE)
    ends = sorted({run["status"] for run in others})
    theatre.report.facts.equal("what the provider had, or was sent since, was delivered", ends, ["succeeded"])
    tries = sorted({run["usage"]["attempts"] for run in others})
    theatre.report.facts.equal("each by its first attempt", tries, [1])
    jobs = [job for job in (await theatre.ledger())["submissions"] if job["account"] == "cirrus"]
    theatre.report.facts.equal("jobs that the provider was sent, in all lives", len(jobs), len(clips))


Drill = Callable[[Theatre], Awaitable[None]]
DRILLS: Mapping[str, Drill] = {
    "provider-timeout": provider_timeout,
    "hash-mismatch": hash_mismatch,
    "reviewer-absent": reviewer_absent,
    "rights-revoked": rights_revoked,
    "database-restored": database_restored,
    "upload-failure": upload_failure,
}
LOST_AFTER_BACKUP = "database-restored"
"""Its last Run came after the backup: lost, and its job is on no book of ours."""


async def _first_alert(theatre: Theatre, kind: str) -> None:
    """Operators are told of it, before anything else that they are told of."""
    asked = "/v1/operator/alerts?open=true"
    told = await theatre.until(lambda: theatre.api.get(asked), lambda page: bool(page["alerts"]), "operators are told")
    theatre.report.facts.equal("what operators read first", told["alerts"][0]["kind"], kind)


def _production(*nodes: Mapping[str, Any]) -> dict[str, Any]:
    return {"production": "drill", "budget": {"currency": "CNY", "cost": "10.00"}, "nodes": list(nodes)}


def _states(run: Mapping[str, Any]) -> dict[str, str]:
    return {node["id"]: node["status"] for node in run["nodes"]}


def _made(run: Mapping[str, Any], node_id: str) -> str:
    result = run["result"] or {}
    found = next((node.get("artifacts") for node in run["nodes"] if node["id"] == node_id), None)
    return str((found or result["artifacts"])[0]["sha256"])


async def _delivered(theatre: Theatre, sha256: str) -> str:
    """What is answered under a digest: nothing, its bytes, or others."""
    file = theatre.stage.folder / "delivered"
    try:
        await theatre.api.download(f"/v1/artifacts/{sha256}", file)
    except (Problem, Unreachable):
        return REFUSED
    return WHOLE if hashlib.sha256(file.read_bytes()).hexdigest() == sha256 else DAMAGED


async def _status(theatre: Theatre, key: str) -> int:
    """How a caller with that key is answered."""
    try:
        async with Api(theatre.stage.url, key) as caller:
            await caller.get("/v1/runs")
    except Problem as problem:
        return problem.status
    return 200
