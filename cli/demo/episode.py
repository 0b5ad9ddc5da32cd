"""The production of one episode, act by act. Each act drives the product from outside and notes what must be true."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from cli.demo.facts import Facts
from cli.demo.requests import supply_health
from cli.demo.stage import Stage, StageError, wait_until

DOCUMENT = Path(__file__).with_name("episode.yaml")
CATALOG = Path(__file__).with_name("episode-catalog.yaml")
SETTINGS = {
    "ROUTING_WORKER_LEASE_S": "4.5",
    "ROUTING_HEARTBEAT_S": "1.5",
    "ROUTING_CAPACITY_TTL_S": "6",
    "ROUTING_RENEW_INTERVAL_S": "2",
    "POINTSMAN_RECONCILE_SETTLE_S": "2",
}
"""Leases that lapse soon: nobody wants to wait for those of a process that was killed."""
SLIP = "S07"
"""The shot whose length in the document is one that the edit has no room for."""
STYLE = "in black and white, with the grain of old film"
SOFT_AT_ONCE = 2
"""Generations at work after the budget's soft limit."""
ACT_S = 90.0
MADE = "succeeded"
ENDED = frozenset({MADE, "failed", "cancelled"})
DEAD, OTHERS = "aurora", ("boreal", "cirrus")
SPEED = 3.0
"""How much quicker than usual the accounts of shots are, so that nobody waits for a provider's clock."""
Document = dict[str, Any]
Looked = dict[str, Any]


@dataclass(slots=True)
class Episode:
    """What the acts share."""

    stage: Stage
    facts: Facts
    document: Document
    run_id: str = ""
    notes: list[tuple[datetime, str]] = field(default_factory=list)
    """What happened outside the product, for the timeline."""

    def note(self, words: str) -> None:
        """Something that no event tells."""
        self.notes.append((datetime.now(UTC), words))

    async def run(self) -> Looked:
        """The Run as it is now."""
        return await self.stage.api.get(f"/v1/runs/{self.run_id}")

    async def events(self) -> list[Looked]:
        """Its whole history."""
        found: list[Looked] = []
        while True:
            after = found[-1]["sequence"] if found else 0
            page = await self.stage.api.get(f"/v1/runs/{self.run_id}/events", after=after, limit=500)
            if not page["events"]:
                return found
            found += page["events"]

    async def until(self, what: str, done: Callable[[Looked], bool]) -> Looked:
        """The Run once it is so. StageError, with what every node waits for, if it does not get there."""
        run = await wait_until(self.run, done, seconds=ACT_S, every=0.1)
        if not done(run):
            raise StageError(f"{what}: not within {ACT_S:g} s; {_standing(run)}")
        return run

    async def ledger(self) -> Looked:
        """What the providers have accepted and charged."""
        return await self.stage.lab.get("/lab/ledger")

    async def account(self, name: str, **changes: Any) -> None:
        """Change an account at the providers."""
        await self.stage.lab.call("POST", f"/lab/accounts/{name}", body=changes)


def shortened(document: Document, shots: int) -> Document:
    """The same episode with its first shots and the one with the slip, and a budget that fits."""
    kept = [shot for shot in document["inputs"]["shots"] if shot["id"] in {"S01", "S02", "S05", SLIP}]
    others = [shot for shot in document["inputs"]["shots"] if shot not in kept]
    chosen = sorted([*kept, *others[: shots - len(kept)]], key=lambda shot: shot["id"])
    nodes = [_with_lines(node, len(chosen)) for node in document["nodes"]]
    budget = {**document["budget"], "soft": "26.00"}
    return {**document, "budget": budget, "inputs": {**document["inputs"], "shots": chosen}, "nodes": nodes}


def _with_lines(node: Document, count: int) -> Document:
    lines = node.get("input", {}).get("subtitles")
    return {**node, "input": {**node["input"], "subtitles": lines[:count]}} if lines else node


def read_document() -> Document:
    """The document of the episode."""
    read: Document = yaml.safe_load(DOCUMENT.read_text(encoding="utf-8"))
    return read


def items(run: Looked, parent: str) -> list[Looked]:
    """The nodes that a map's items became."""
    return [node for node in run["nodes"] if node["parent"] == parent]


def made(run: Looked, parent: str) -> list[Looked]:
    """Those that have a result."""
    return [node for node in items(run, parent) if node["status"] == MADE]


def node_of(run: Looked, name: str) -> Looked:
    """One node; an empty one that is pending where it does not exist yet."""
    return next((node for node in run["nodes"] if node["id"] == name), {"id": name, "status": "pending"})


def _standing(run: Looked) -> str:
    told = [f"{node['id']} {node['status']} ({node['waiting_reason']})" for node in run["nodes"] if _open(node)]
    return f"the run is {run['status']}; " + "; ".join(told[:8])


def _open(node: Mapping[str, Any]) -> bool:
    return node["status"] not in ENDED or bool(node["waiting_reason"])


async def decide(episode: Episode, node: str, comment: str) -> Looked:
    """Take the review of a gate, look at it, approve it as a reviewer would."""
    api = episode.stage.api
    await episode.until(f"{node} asks", lambda run: node_of(run, node)["status"] == "waiting_human")
    asked = await wait_until(
        lambda: api.get("/v1/operator/reviews", run=episode.run_id),
        lambda page: any(review["node"] == node for review in page["reviews"]),
        seconds=ACT_S,
    )
    review = next(review for review in asked["reviews"] if review["node"] == node)
    await api.call("POST", f"/v1/operator/reviews/{review['id']}/claim", body={"who": "the editor"})
    body = {"decision": "approve", "comment": comment, "subject_hash": review["subject_hash"]}
    return await api.call("POST", f"/v1/operator/reviews/{review['id']}/decide", body=body)


async def storyboard(episode: Episode) -> None:
    """The document is handed in; nothing is made before a person has approved the storyboard."""
    await _tempo(episode)
    run = await episode.stage.api.call("POST", "/v1/runs", body={"production": episode.document})
    episode.run_id = run["id"]
    await episode.until("the storyboard asks", lambda run: node_of(run, "storyboard")["status"] == "waiting_human")
    episode.facts.equal("jobs before the storyboard was approved", len((await episode.ledger())["submissions"]), 0)
    decided = await decide(episode, "storyboard", "go ahead")
    episode.facts.equal("the storyboard was decided", decided["decision"], "approve")


async def keyframes(episode: Episode) -> None:
    """Canaries of each class, the rest when they are good, and a look at all of them."""
    run = await episode.until("the keyframes", lambda run: node_of(run, "keyframe_qc")["status"] in ENDED)
    wanted = len(episode.document["inputs"]["shots"])
    episode.facts.equal("keyframes that were made", len(made(run, "keyframes")), wanted)
    episode.facts.equal("the check of them", node_of(run, "keyframe_qc")["status"], MADE)


async def death_and_style(episode: Episode) -> None:
    """A person looks at the first shot of each class; the account that made them begins to answer 500, and the style
    changes; then the others may follow.

    The other accounts take what comes, and hold it until everything was killed.
    """
    first = await _canaries(episode)
    for account in OTHERS:
        await episode.account(account, running=0)
    rule = {"match": {"account": DEAD}, "then": [{"status": 500}], "repeat": "forever"}
    await episode.stage.lab.call("POST", "/lab/script", body=rule)
    episode.note(f"{DEAD} answers 500 to everything that is sent to it")
    path = f"/v1/runs/{episode.run_id}/steer"
    steer = {"kind": "style", "data": {"text": STYLE}}
    answer = await episode.stage.api.call("POST", path, body=steer, headers={"Idempotency-Key": "style-1"})
    again = await episode.stage.api.call("POST", path, body=steer, headers={"Idempotency-Key": "style-1"})
    episode.facts.check("the style is one input, however often it is sent", answer == again, answer["sequence"])
    for review in first:
        body = {"decision": "approve", "comment": "the others may follow", "subject_hash": review["subject_hash"]}
        await episode.stage.api.call("POST", f"/v1/operator/reviews/{review['id']}/decide", body=body)
    state = await wait_until(
        lambda: supply_health(episode.stage.api, f"{DEAD}/shots"),
        lambda seen: seen["state"] == "circuit_open",
        seconds=ACT_S,
    )
    episode.facts.equal(f"the circuit of {DEAD} after its death", state["state"], "circuit_open")


async def _canaries(episode: Episode) -> list[Looked]:
    """The reviews of the first shots of every class that has more than one."""
    classes = Counter(shot["shot_class"] for shot in episode.document["inputs"]["shots"])
    wanted = sum(count > 1 for count in classes.values())

    def canaries(page: Looked) -> list[Looked]:
        return [review for review in page["reviews"] if review["kind"] == "canary" and review["node"] == "motion"]

    page = await wait_until(
        lambda: episode.stage.api.get("/v1/operator/reviews", run=episode.run_id),
        lambda page: len(canaries(page)) == wanted,
        seconds=ACT_S,
    )
    return canaries(page)


async def slip(episode: Episode) -> None:
    """One shot is as long as the document says and too long for the edit: its check finds it, a redrive mends it."""
    name = f"motion/{SLIP}"
    run = await episode.until(f"the check of {name}", lambda run: node_of(run, name)["status"] in ENDED)
    node = node_of(run, name)
    error = node["error"] or {}
    episode.facts.equal(f"{SLIP} was made and did not pass", error.get("code"), "check_failed")
    letters = await episode.stage.api.get("/v1/operator/dead-letters", run=episode.run_id)
    filed = [(letter["node"], letter["desk"]) for letter in letters["dead_letters"]]
    episode.facts.equal("and lies on the desk of content", filed, [(name, "content")])
    body = {"node": name, "input": {"duration_s": 4}, "reason": "the edit has room for four seconds"}
    await episode.stage.api.call("POST", f"/v1/runs/{episode.run_id}/redrive", body=body)


async def crash(episode: Episode) -> None:
    """In the middle, with jobs at the providers, everything is killed with -9 and started again."""
    wanted = min(4, len(episode.document["inputs"]["shots"]) - 3)
    held = await wait_until(lambda: _jobs(episode), lambda count: count >= wanted, seconds=ACT_S)
    episode.facts.check("shots at the providers when all was killed", held >= wanted, held, f"{wanted} or more")
    before = await episode.events()
    episode.note("kill -9 of the stack, its database and the providers")
    count = await episode.stage.kill()
    episode.facts.check("processes that were killed", count > 2, count, "the product, its database, the providers")
    await episode.stage.start()
    episode.note("the stack is back, with the same data")
    await _tempo(episode)
    kept = (await episode.events())[: len(before)] == before
    episode.facts.check("the history from before the kill is kept", kept, f"{len(before)} events")


async def _jobs(episode: Episode) -> int:
    accounts = (await episode.stage.lab.get("/lab/accounts"))["accounts"]
    return sum(account["active"] for account in accounts if account["id"] in OTHERS)


async def _tempo(episode: Episode) -> None:
    await asyncio.gather(*(episode.account(name, speed=SPEED) for name in (DEAD, *OTHERS)))


async def soft_limit(episode: Episode) -> None:
    """The budget reaches its soft limit: it is told, and producing goes on with fewer at once."""
    run = await episode.until("the shots", lambda run: len(made(run, "motion")) == len(items(run, "motion")) > 0)
    episode.facts.equal("shots that passed", len(made(run, "motion")), len(episode.document["inputs"]["shots"]))
    alerts = (await episode.stage.api.get("/v1/operator/alerts"))["alerts"]
    told = [alert for alert in alerts if alert["kind"] == "budget_soft_limit"]
    episode.facts.equal("alerts of the budget's soft limit", len(told), 1)
    kinds = {alert["kind"] for alert in alerts}
    episode.facts.check(f"operators were told of {DEAD}", "breaker_opened" in kinds, sorted(kinds), "breaker_opened")


async def release(episode: Episode) -> Looked:
    """A person has seen all shots; the film is put together, looked at, and released."""
    await decide(episode, "rough_cut", "every shot is there")
    decided = await decide(episode, "release", "it may be shown")
    episode.facts.equal("the release was decided", decided["decision"], "approve")
    return await episode.until("the end", lambda run: run["status"] not in ("pending", "running", "paused"))
