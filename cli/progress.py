"""A run followed on the terminal."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from cli import output
from cli.api import Api, Unreachable

RESTING = frozenset({"succeeded", "failed", "timed_out", "cancelled", "dead_letter", "paused"})
RECONNECT_S = 1.0
RECONNECTS = 30


ITEM_ENDS = frozenset({"node_completed", "node_failed", "node_cancelled"})
ITEM_BEGINNINGS = frozenset({"node_ready", "node_stale"})
UNTOLD = frozenset(
    "node_ready node_started attempt_started attempt_finished artifact_written budget_held budget_settled"
    " review_due review_refused review_minutes_held review_minutes_settled".split()
)
"""Kinds that bars and figures tell better than lines."""


@dataclass
class Maps:
    """How far the maps of a production are, by its events: map -> (items that have ended, items)."""

    ended: dict[str, set[str]] = field(default_factory=dict)
    items: dict[str, int] = field(default_factory=dict)

    def hear(self, event: Mapping[str, Any]) -> str:
        """The map that an event changes, or ""."""
        kind, data = event["kind"], event["data"]
        if kind == "run_redriven":
            for node in data.get("nodes", ()):
                self.ended.get(str(node).partition("/")[0], set()).discard(node)
            return ""
        node = str(data.get("node", ""))
        outer, slash, _ = node.partition("/")
        if kind == "node_ready" and "items" in data:
            self.items[node] = len(data["items"])
            self.ended.setdefault(node, set())
            return node
        if not slash or outer not in self.items:
            return ""
        if kind in ITEM_ENDS:
            self.ended[outer].add(node)
        elif kind in ITEM_BEGINNINGS:
            self.ended[outer].discard(node)
        return outer

    def done(self, name: str) -> int:
        """How many items of that map have ended, in whatever way."""
        return len(self.ended.get(name, ()))


class Display:
    """What a watcher sees. Of a production also a bar for each map, and its noteworthy events as lines."""

    def __init__(self, run_id: str, progress: Progress, quiet: bool) -> None:
        self._run_id = run_id
        self._progress = progress
        self._quiet = quiet
        self._bar = progress.add_task(f"run {run_id}", total=None)
        self._maps = Maps()
        self._bars: dict[str, TaskID] = {}
        self._production = False

    def say(self, words: str) -> None:
        """Behind the spinner."""
        self._progress.update(self._bar, description=f"run {self._run_id}: {words}")

    def hear(self, event: dict[str, Any]) -> None:
        """Show one event."""
        self._production = self._production or bool(event["data"].get("production"))
        self.say(describe(event))
        changed = self._maps.hear(event)
        for name in {changed} & self._maps.items.keys():
            if name not in self._bars:
                self._bars[name] = self._progress.add_task(name)
            total, done = self._maps.items[name], self._maps.done(name)
            words = f"  {name}: {done} of {total} items"
            self._progress.update(self._bars[name], description=words, total=max(total, 1), completed=done)
        if self._production and not self._quiet and event["kind"] not in UNTOLD:
            line = f"{event['sequence']:>5}  {describe(event)}"
            self._progress.console.print(line, highlight=False, markup=False, soft_wrap=True)


async def follow(api: Api, run_id: str, *, quiet: bool = False) -> dict[str, Any]:
    """The Run once it rests.

    Shows its events as they come, unless `quiet`: on a terminal behind a spinner, of a production also as lines. A
    broken stream is resumed where it broke.
    """
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    hidden = quiet or not output.errors.is_terminal
    with Progress(*columns, console=output.errors, disable=hidden, transient=True) as progress:
        display = Display(run_id, progress, quiet)
        after, breaks = 0, 0
        while True:
            try:
                async for event in api.events(run_id, after):
                    after, breaks = event["sequence"], 0
                    display.hear(event)
                found = await api.get(f"/v1/runs/{run_id}")
                if found["status"] in RESTING:
                    return found
            except Unreachable:
                breaks += 1
                if breaks > RECONNECTS:
                    raise
                display.say("the server does not answer, trying again")
            await asyncio.sleep(RECONNECT_S)


def describe(event: dict[str, Any]) -> str:
    """One event in a few words; unknown kinds by their name."""
    data = event["data"]
    match event["kind"]:
        case "attempt_started":
            return f"attempt {data['number']} on {data['supply']}"
        case "attempt_finished":
            error = (data.get("error") or {}).get("code")
            return f"attempt {data['number']} {data['state']}" + (f" ({error})" if error else "")
        case "node_waiting":
            return f"{_node(data)}waits: {data['reason']}"
        case "node_failed":
            return f"{_node(data)}failed: {data['error']['code']}: {data['error']['message']}"
        case "node_completed":
            return f"{_node(data)}done" + (" (nothing had changed)" if data.get("reused") else "")
        case "node_cancelled" | "node_stale":
            return f"{_node(data)}{kind_of(event)}: {data.get('reason') or data.get('cause')}"
        case "gate_opened" | "review_opened":
            asked = data["review"]
            return f"{_node(data)}asks: {asked['question']} (pointsman review show {asked['id']})"
        case "gate_decided" | "review_decided":
            return f"{_node(data)}{data['decision']} by {data['who']}"
        case "review_escalated":
            return f"{_node(data)}nobody decided; now {data['assignee']} is asked"
        case "canary_released":
            return f"{_node(data)}the rest of class {data['shot_class']!r} may follow (by {data['by']})"
        case "backpressure_started":
            return f"producing waits for people: {data['reason']}"
        case "run.steer.consumed":
            return f"{_node(data)}takes steering input {data['sequence']} ({data['kind']})"
        case "run.steer.accepted":
            now = "waits again" if again(data) else "is accepted"
            return f"steering input {data['sequence']} ({data['kind']}) {now}"
        case "run.steer.superseded":
            return f"steering input {data['sequence']} ({data['kind']}) was taken by nobody"
        case "budget_soft_limit":
            return f"the soft limit of {data['budget_id']} is reached"
        case "budget_freed":
            return f"{data['budget_id']} has room again"
        case "budget_not_raised":
            return f"the limit of {data['budget_id']} could not be raised: {data['cause']}"
        case kind:
            return str(kind).replace("_", " ")


def again(data: Mapping[str, Any]) -> bool:
    """Whether it had been accepted before: a pause keeps what was steered, and the resume tells it anew."""
    return bool(data.get("source_event_id", data["steering_event_id"]) != data["steering_event_id"])


def kind_of(event: Mapping[str, Any]) -> str:
    """`cancelled` of `node_cancelled`."""
    return str(event["kind"]).partition("_")[2]


def _node(data: Mapping[str, Any]) -> str:
    """The node's name before what happened to it; nothing for the only node of a single request."""
    name = data.get("node", "")
    return f"{name} " if name not in ("", "main") else ""
