"""The acts of the story. Each drives the product from outside and notes what must be true of it."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from cli.demo.facts import Facts, words
from cli.demo.requests import (
    SCENES,
    channel_health,
    clip,
    create,
    finish,
    finish_all,
    get,
    slots_in_use,
    supply_health,
    task_of,
)
from cli.demo.stage import Stage, wait_until

BURST = 20
FREE = {"aurora/seedance": 5, "boreal/seedance": 8, "cirrus/seedance-pro": 3}
LADDER = [1, 2, 4, 6, 8]
"""Effective slots of a Supply of eight after each of five successes: probing, 25 %, 50 %, 75 %, healthy."""
WATCHED_S = 30.0


@dataclass(slots=True)
class Story:
    """What the acts share."""

    stage: Stage
    facts: Facts
    keyframes: list[str] = field(default_factory=list)
    explained: str = ""
    """The task whose selection is shown at the end."""

    @property
    def api(self) -> Any:
        """The product."""
        return self.stage.api

    async def account(self, name: str, **changes: Any) -> None:
        """Change an account at the providers."""
        await self.stage.lab.call("POST", f"/lab/accounts/{name}", body=changes)

    async def script(self, match: dict[str, Any], *steps: dict[str, Any], repeat: int = 1) -> None:
        """Make the providers answer as told."""
        await self.stage.lab.call("POST", "/lab/script", body={"match": match, "then": steps, "repeat": repeat})

    async def ledger(self) -> dict[str, Any]:
        """What the providers have accepted and charged."""
        return await self.stage.lab.get("/lab/ledger")


async def pictures_and_voice(story: Story) -> None:
    """Four keyframes by two competing supplies, and a narration."""
    frames = [
        await create(story.api, "keyframe", {"prompt": scene, "size": "1280x720"}, "keyframe") for scene in SCENES
    ]
    text = "Four scenes, three studios, one pointsman."
    voice = await create(story.api, "voice", {"text": text, "voice": "alloy"}, "voice")
    *made, spoken = await finish_all(story.api, [*frames, voice])
    story.keyframes = [run["result"]["artifacts"][0]["sha256"] for run in made if run["status"] == "succeeded"]
    story.facts.equal("four keyframes were made", len(story.keyframes), len(SCENES))
    suppliers = sorted({run["usage"]["supply"] for run in made})
    story.facts.equal("both picture supplies had work", suppliers, ["dahlia/pictures", "ember/pictures"])
    story.facts.equal("the narration was spoken", spoken["status"], "succeeded")


async def burst(story: Story) -> list[str]:
    """Twenty clips against 5 + 8 + 3 free slots: sixteen run, four wait. The providers hold all until we have looked.

    Answers the ids of the Runs.
    """
    for account in ("aurora", "boreal", "cirrus"):
        await story.account(account, running=0)
    jobs = [
        create(story.api, "clip", clip(f"{SCENES[n % 4]}, shot {n + 1}", story.keyframes[n % 4]), "burst")
        for n in range(BURST)
    ]
    runs = list(await asyncio.gather(*jobs))
    used = await wait_until(
        lambda: slots_in_use(story.api),
        lambda seen: all(seen[name] == n for name, n in FREE.items()),
        seconds=WATCHED_S,
    )
    story.facts.equal("slots in use at the height of the burst", {name: used[name] for name in FREE}, FREE)
    waiting = await wait_until(lambda: _waiting(story, runs), _all_wait_for_a_slot, seconds=WATCHED_S)
    story.facts.equal("tasks that wait for a release", len(waiting), BURST - 16)
    story.facts.check(
        "each waiting task says why", all("capacity" in reason for reason in waiting), set(waiting), "capacity"
    )
    held = (await story.ledger())["submissions"]
    clips = [item for item in held if item["kind"] == "video"]
    story.facts.equal("jobs that the providers hold meanwhile", len(clips), 16)
    return runs


def _all_wait_for_a_slot(reasons: list[str]) -> bool:
    return len(reasons) == BURST - 16 and all("capacity" in reason for reason in reasons)


async def _waiting(story: Story, runs: list[str]) -> list[str]:
    found = await asyncio.gather(*(get(story.api, run_id) for run_id in runs))
    return [node["waiting_reason"] for run in found for node in run["nodes"] if node["waiting_reason"]]


async def revoked_key(story: Story) -> None:
    """In the middle of the burst one account's key is revoked: new work goes elsewhere, held work is kept."""
    await story.account("aurora", revoked=True)
    hero = await create(story.api, "clip-hero", clip("the hero shot", story.keyframes[0]), "revoked key")
    for account in ("boreal", "cirrus"):
        await story.account(account, running=16, speed=3)
    run = await finish(story.api, hero)
    attempts = (await task_of(story.api, run))["attempts"]
    tries = [(item["supply"], (item["error"] or {}).get("code", "delivered")) for item in attempts]
    expected = [("aurora/seedance-fast", "key_invalid"), ("boreal/seedance-mini", "delivered")]
    story.facts.equal("a revoked key costs one switch", tries, expected)
    state = (await channel_health(story.api, "aurora"))["state"]
    story.facts.equal("the account's circuit opened at once", state, "circuit_open")


async def failing_model(story: Story) -> list[str]:
    """One model starts to answer 500: three in a row open its circuit."""
    idle = {"boreal/seedance", "cirrus/seedance-pro"}
    await wait_until(
        lambda: slots_in_use(story.api), lambda seen: not any(seen[name] for name in idle), seconds=WATCHED_S
    )
    await story.script({"account": "boreal", "model": "doubao-seedance-2-0-260128"}, {"status": 500}, repeat=3)
    runs = [await create(story.api, "clip-boreal", clip("the stubborn shot"), "model fails") for _ in range(2)]
    state = await wait_until(
        lambda: supply_health(story.api, "boreal/seedance"),
        lambda seen: seen["state"] == "circuit_open",
        seconds=WATCHED_S,
    )
    story.facts.equal("three failures in a row opened the model's circuit", state["state"], "circuit_open")
    story.facts.check("it says why", bool(state["reason"]), state["reason"], "a reason")
    return runs


async def degraded_request(story: Story) -> None:
    """Nine images, three videos, three audios, while every full supply is out: the declared lesser profile serves."""
    pictures = [{"artifact": story.keyframes[n % 4]} for n in range(9)]
    clips = [item["sha256"] for item in await _finished_clips(story)][:1] * 3
    sounds = [item["sha256"] for item in await _finished(story, "voice")][:1] * 3
    given = clip(
        "all nine of them on one stage",
        reference_images=pictures,
        reference_videos=[{"artifact": sha} for sha in clips],
        reference_audios=[{"artifact": sha} for sha in sounds],
    )
    run = await finish(story.api, await create(story.api, "clip-933", given, "degraded"))
    result = run["result"] or {}
    story.facts.equal("the 933 request was served", run["status"], "succeeded")
    story.facts.equal("its result says that it is degraded", result.get("degraded"), True)
    profiles = (result.get("requested_profile"), result.get("actual_profile"))
    story.facts.equal("from which profile to which", profiles, ("933", "900"))
    lost = sorted(result.get("dropped_inputs") or [])
    story.facts.equal("and what was left out", lost, ["reference_audios", "reference_videos"])
    story.explained = run["nodes"][0]["task_id"]
    kinds = {item["kind"] for item in (await story.api.get("/v1/operator/alerts"))["alerts"]}
    wanted = {"degradation_in_use", "exact_supply_unavailable", "breaker_opened"}
    story.facts.check("operators were told", wanted <= kinds, sorted(kinds), words(sorted(wanted)))


async def _finished(story: Story, act: str) -> list[dict[str, Any]]:
    page = await story.api.get("/v1/runs", label=f"act={act}", page_size=100)
    return [run["result"]["artifacts"][0] for run in page["runs"] if run["status"] == "succeeded"]


async def _finished_clips(story: Story) -> list[dict[str, Any]]:
    return await wait_until(lambda: _finished(story, "burst"), bool, seconds=WATCHED_S)


async def refused_content(story: Story) -> None:
    """A moderation refusal is the caller's own: no switch, no damage to anybody's health."""
    before = await supply_health(story.api, "cirrus/seedance-pro")
    run = await finish(
        story.api, await create(story.api, "clip-cirrus", clip("[moderated] a forbidden scene"), "moderated")
    )
    after = await supply_health(story.api, "cirrus/seedance-pro")
    story.facts.equal("the refusal is named", (run["error"] or {}).get("code"), "content_rejected")
    story.facts.equal("nobody else was asked", run["usage"]["attempts"], 1)
    kept = ("state", "epoch", "samples", "success_rate")
    same = {name: after[name] for name in kept} == {name: before[name] for name in kept}
    untouched = {name: before[name] for name in kept}
    story.facts.check("the supply's health is untouched", same, {name: after[name] for name in kept}, words(untouched))


async def lost_answer(story: Story) -> None:
    """A provider takes a job and its answer is lost: it is found in the provider's records, never sent again."""
    await story.script({"account": "cirrus"}, {"drop_after_body": True})
    run = await finish(story.api, await create(story.api, "clip-cirrus", clip("the lost letter"), "lost answer"))
    task = await task_of(story.api, run)
    story.facts.equal("the job whose answer was lost has a result", run["status"], "succeeded")
    story.facts.equal("by one attempt", len(task["attempts"]), 1)
    token = task["attempts"][0]["client_token"]
    book = await story.ledger()
    sent = [item for item in book["submissions"] if token in (item["client_token"], item["safety_identifier"])]
    story.facts.equal("and one submission in the provider's ledger", len(sent), 1)


async def recovery(story: Story, runs: list[str]) -> None:
    """The failing model heals: one probe at a time, then 25, 50, 75 % of its eight slots, then all."""
    await wait_until(
        lambda: supply_health(story.api, "boreal/seedance"),
        lambda seen: seen["state"] in {"probing", "recovering", "healthy"},
        seconds=WATCHED_S,
    )
    seen: list[int] = []
    for step in range(2 * len(LADDER)):
        view = await supply_health(story.api, "boreal/seedance")
        if not seen or view["effective_concurrency"] != seen[-1]:
            seen.append(view["effective_concurrency"])
        if view["state"] == "healthy":
            break
        await finish(story.api, await create(story.api, "clip-boreal", clip(f"healing, step {step + 1}"), "recovery"))
    story.facts.equal("slots on the way up", seen, LADDER)
    state = (await supply_health(story.api, "boreal/seedance"))["state"]
    story.facts.equal("the model is well again", state, "healthy")
    ends = sorted(run["status"] for run in await finish_all(story.api, runs))
    story.facts.equal("of the two stubborn shots one used up its attempts, one waited", ends, ["failed", "succeeded"])


async def restored_key(story: Story, runs: list[str]) -> None:
    """The key is given back: what the account held all the time is delivered, by the first attempt."""
    await story.account("aurora", revoked=False, running=12)
    done = await finish_all(story.api, runs)
    story.facts.equal(
        "clips of the burst that were delivered", sum(run["status"] == "succeeded" for run in done), BURST
    )
    held = [run for run in done if run["usage"]["supply"] == "aurora/seedance"]
    story.facts.check("the account's five held jobs among them", len(held) >= 5, len(held), "5 or more")
    story.facts.equal("each by one attempt", {run["usage"]["attempts"] for run in done}, {1})
