"""What a history tells: stages and their money, what happened when, and whether it holds together. Pure.

Laws of this file: everything is told by events, so that nothing is believed that is not on record; money is exact.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from cli.demo.accounts import in_cny

Event = Mapping[str, Any]
ZERO = Decimal(0)
BEGINS = "node_ready"
LEAVES = frozenset({"node_completed", "node_failed", "node_cancelled"})
STATES = {"node_completed": "succeeded", "node_failed": "failed", "node_cancelled": "cancelled"}
PLAIN = {
    "run_created": "the production is accepted",
    "gate_opened": "{node} asks: {question}",
    "gate_decided": "{node}: {decision} by {who}",
    "canary_released": "{node}: the canaries of class {shot_class} are good, the rest follows",
    "run.steer.accepted": "a steering input is accepted: {kind}",
    "budget_soft_limit": "the budget reaches its soft limit: two at once from now on",
    "run_redriven": "redriven with another input: {reason}",
    "run_completed": "the production is complete",
}


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of a production: nodes, tries at providers, the most that was set aside for it, what it cost; CNY."""

    name: str
    nodes: int
    attempts: int
    held: Decimal
    spent: Decimal


def stage_of(node: str) -> str:
    """The map of an item, or the node itself."""
    return node.partition("/")[0]


def stages(events: Sequence[Event]) -> list[Stage]:
    """The stages that cost money, in the order in which they began."""
    names = dict.fromkeys(stage_of(item["data"]["node"]) for item in events if item["kind"] == "budget_held")
    return [_stage(name, [item for item in events if stage_of(item["data"].get("node", "")) == name]) for name in names]


def _stage(name: str, events: Sequence[Event]) -> Stage:
    nodes = {item["data"]["node"] for item in events if item["kind"] == "budget_held"}
    attempts = sum(item["kind"] == "attempt_started" for item in events)
    held = sum((in_cny(item["data"]["amount"]) for item in events if item["kind"] == "budget_held"), ZERO)
    spent = sum((in_cny(item["data"]["amount"]) for item in events if item["kind"] == "budget_settled"), ZERO)
    return Stage(name, len(nodes), attempts, held, spent)


def unsettled(events: Sequence[Event]) -> list[str]:
    """Holds that were taken and never settled."""
    held = [item["data"]["hold_id"] for item in events if item["kind"] == "budget_held"]
    settled = {item["data"]["hold_id"] for item in events if item["kind"] == "budget_settled"}
    return [name for name in held if name not in settled]


def gaps(events: Sequence[Event]) -> list[int]:
    """Sequences that are not where they should be; empty = gap-free from 1."""
    return [item["sequence"] for place, item in enumerate(events, start=1) if item["sequence"] != place]


def rebuilt(events: Sequence[Event]) -> dict[str, str]:
    """The state of every node that ended, from the history alone."""
    ended: dict[str, str] = {}
    for item in events:
        node = item["data"].get("node", "")
        if item["kind"] in STATES:
            ended[node] = STATES[item["kind"]]
        elif item["kind"] == "gate_decided" and item["data"]["decision"] == "approve":
            ended[node] = "succeeded"
    return ended


def most_begun_after_soft(events: Sequence[Event]) -> int:
    """How many generations were at work, at most, whenever one began after the soft limit; those of a hero aside."""
    at_work: set[str] = set()
    soft, most = False, 0
    for item in events:
        node = item["data"].get("node", "")
        soft = soft or item["kind"] == "budget_soft_limit"
        if item["kind"] == BEGINS and "task_id" in item["data"]:
            at_work.add(node)
            most = max(most, len(at_work)) if soft and node != "film" else most
        elif item["kind"] in LEAVES or (item["kind"] == "node_waiting" and item["data"].get("state")):
            at_work.discard(node)
    return most


def first_of_class(events: Sequence[Event], parent: str) -> list[str]:
    """Items of a map that began before the canaries of their class were released, beyond the first of each class."""
    classes: dict[str, str] = {}
    released: set[str] = set()
    begun: dict[str, str] = {}
    early = []
    for item in events:
        data = item["data"]
        if item["kind"] == BEGINS and data["node"] == parent:
            classes = {f"{parent}/{one['id']}": one["shot_class"] for one in data["items"]}
        elif item["kind"] == "canary_released" and data["node"] == parent:
            released.add(data["shot_class"])
        elif item["kind"] == BEGINS and data["node"] in classes:
            shot_class = classes[data["node"]]
            if begun.setdefault(shot_class, data["node"]) != data["node"] and shot_class not in released:
                early.append(data["node"])
    return early


def styled(events: Sequence[Event], parent: str, style: str) -> tuple[int, list[str]]:
    """(shots that were begun with the style, those whose input contradicts when they were begun)."""
    steered, held, wrong = False, 0, []
    for item in events:
        steered = steered or item["kind"] == "run.steer.accepted"
        if item["kind"] == BEGINS and stage_of(item["data"]["node"]) == parent and "task_id" in item["data"]:
            has = style in item["data"]["input"].get("prompt", "")
            held += has
            wrong += [item["data"]["node"]] if has != steered else []
    return held, wrong


def makers(events: Sequence[Event]) -> dict[str, str]:
    """By node: the Supply that made its result."""
    done = (item["data"] for item in events if item["kind"] == "attempt_finished")
    return {data["node"]: data["supply"] for data in done if data["state"] == "succeeded"}


def tasks(events: Sequence[Event]) -> list[str]:
    """Every Task that was handed over, of every try."""
    found = (item["data"].get("task_id") for item in events if item["kind"] == "node_started")
    return [task for task in found if task]


def timeline(events: Sequence[Event], notes: Sequence[tuple[datetime, str]]) -> list[tuple[float, str]]:
    """(seconds from the beginning, words) of what is worth telling, with what happened outside."""
    told = [(moment(item["created_at"]), words) for item in events for words in _told(item)]
    start = moment(events[0]["created_at"])
    return [((at - start).total_seconds(), words) for at, words in sorted([*told, *notes], key=lambda line: line[0])]


def _told(item: Event) -> Iterator[str]:
    kind, data = item["kind"], item["data"]
    if kind in PLAIN:
        yield PLAIN[kind].format_map({"question": "", **data, **(data.get("review") or {})})
    elif kind == "node_completed" and "/" not in data["node"]:
        yield f"{data['node']} is done"
    elif kind == "node_failed":
        yield f"{data['node']} failed: {data['error']['code']}: {data['error']['message']}"
    elif kind == "attempt_finished" and data["state"] == "failed":
        yield f"{data['node']}: {data['supply']} failed ({data['error']['code']}), another one takes it"


def moment(text: str) -> datetime:
    """A time of the product."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
