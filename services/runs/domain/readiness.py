"""Why a node does not begin, in words that a person understands; "" when it may (RUN-2, GATE-1, GATE-4).

The reasons are worked out whenever somebody looks: they are never events, and never stale.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from libs.kernel.canonical import plain
from services.runs.domain.maps import Crowd, crowd, held_back
from services.runs.domain.plan import Kind, Plan, Spec, ValueClass
from services.runs.domain.run import AT_WORK, ENDED_NODES, WAITING_TO_START, Draft, Node, NodeState, Run, RunState

SOFT_CONCURRENCY = 2
"""Nodes at work at once after a soft limit of the budget was reached (COST-10)."""


@dataclass(slots=True)
class Look:
    """One look at a Run: what is counted over all nodes is counted once. For one state of one Run."""

    plan: Plan
    run: Run
    now: datetime
    _crowds: dict[str, Crowd] = field(default_factory=dict)
    _at_work: int | None = None
    _coming: dict[str, str] = field(default_factory=dict)

    def waiting_reason(self, node: Node) -> str:
        """Why a node waits at this moment, whatever it waits for; "" for one that is at work or has ended."""
        if node.state in WAITING_TO_START and not self.plan.single:
            return self.waits_for(node) or node.waiting_reason
        if self.run.state is RunState.PAUSED and node.state not in ENDED_NODES:
            return "pause: the run is paused"
        return node.waiting_reason

    def waits_for(self, node: Node) -> str:
        """The one reason for which a pending or stale node does not begin."""
        if self.run.state is RunState.PAUSED:
            return "pause: the run is paused"
        spec = self.plan.spec(node.id)
        if node.parent:
            parent = self.run.nodes[node.parent]
            if parent.state is not NodeState.RUNNING:
                return f"dependency: {parent.id} is {parent.state}"
        elif reason := self._unmet(spec):
            return reason
        if reason := self._made_anew(node.parent or node.id):
            return reason
        if node.hold is not None:  # what it could spend and did not is free for this try, and this try holds its own
            return "budget: the try before is being settled"
        if node.retry_at is not None and node.retry_at > self.now:
            return f"backoff: until {plain(node.retry_at)}"
        if node.parent and (reason := held_back(self.plan, self.run, node, self._crowd(node.parent))):
            return reason
        return self._no_room(spec) if spec.kind is Kind.GENERATE and not self.plan.single else ""

    def _unmet(self, spec: Spec) -> str:
        for need in spec.needs:
            node = self.run.nodes[need]
            if node.state is NodeState.SUCCEEDED:
                continue
            kind = "gate" if self.plan.spec(need).kind in (Kind.GATE, Kind.CHECK) else "dependency"
            return f"{kind}: {need} is {node.state}"
        return ""

    def _made_anew(self, node_id: str) -> str:
        """What is made anew somewhere before a node and may change all that follows it (GATE-2, STALE-1); "" = nothing.

        Only a redrive puts anything at work behind what has finished. What can never finish again holds nobody up:
        then what was made before it stands.
        """
        return next(filter(None, map(self._comes, self.plan.spec(node_id).needs)), "") if self.run.redrives else ""

    def _comes(self, node_id: str) -> str:
        if node_id not in self._coming:
            node = self.run.nodes[node_id]
            if node.state in ENDED_NODES:
                self._coming[node_id] = self._made_anew(node_id)
            else:
                self._coming[node_id] = f"dependency: {node_id} is {node.state}, and what follows it may change"
        return self._coming[node_id]

    def _crowd(self, map_id: str) -> Crowd:
        if map_id not in self._crowds:
            self._crowds[map_id] = crowd(self.run, self.run.nodes[map_id])
        return self._crowds[map_id]

    def _no_room(self, spec: Spec) -> str:
        if self.run.backpressure:
            return f"review backlog: {self.run.backpressure}"
        if self._at_work is None:
            nodes = self.run.nodes.values()
            self._at_work = sum(node.state in AT_WORK and not node.items and not node.refused for node in nodes)
        at_work = self._at_work
        if self.plan.concurrency and at_work >= self.plan.concurrency:
            return f"slot: {at_work} of {self.plan.concurrency} nodes of this run are at work"
        if self.run.soft and spec.value_class is not ValueClass.HERO and at_work >= SOFT_CONCURRENCY:
            return f"budget: its soft limit is reached; {SOFT_CONCURRENCY} nodes at once"
        return ""


def pressure(plan: Plan, run: Run, now: datetime) -> tuple[Draft, ...]:
    """Producing pauses while people have too much to look at, and goes on once they have caught up (GATE-4)."""
    load, open_now = plan.reviews, len(run.questions)
    cause = _too_slow(plan, run, now)
    if not run.backpressure:
        if open_now >= load.most:
            cause = f"{open_now} reviews are open, {load.most} are borne"
        if cause:
            told = {"reason": cause, "open": open_now, "most": load.most, "by": "runs"}
            return (Draft("backpressure_started", told),)
    elif open_now <= load.resume and not cause:
        return (Draft("backpressure_ended", {"open": open_now, "resume": load.resume, "by": "runs"}),)
    return ()


def _too_slow(plan: Plan, run: Run, now: datetime) -> str:
    """Why people do not keep up, however few reviews are open; "" if they do."""
    oldest = min((asked.opened_at for asked in run.questions.values()), default=now)
    if now - oldest > plan.reviews.oldest:
        return f"the oldest review is open since {plain(oldest)}"
    needed = _time_to_drain(run, len(run.questions))
    if needed > plan.reviews.horizon:
        return f"{len(run.questions)} reviews are open, which takes {needed} at the rate of the last decisions"
    return ""


def _time_to_drain(run: Run, open_now: int) -> timedelta:
    """How long people need for what is open, at the rate of their last decisions; nothing while none is known."""
    if len(run.decided_at) < 2 or not open_now:
        return timedelta(0)
    each = (run.decided_at[-1] - run.decided_at[0]) / (len(run.decided_at) - 1)
    return each * open_now


def hopeless(run: Run) -> bool:
    """Nothing is at work, nobody is asked, and nothing is left that begins by itself.

    What waits for something that will never be there has ended by then (`stranding`).
    """
    if run.asked or run.reserved or run.raising:
        return False
    if any(node.state in AT_WORK or node.hold for node in run.nodes.values()):
        return False
    return not any(_may_begin_some_day(run, node) for node in run.nodes.values() if node.state not in ENDED_NODES)


def _may_begin_some_day(run: Run, node: Node) -> bool:
    if node.state not in WAITING_TO_START or not node.parent:
        return True
    return run.nodes[node.parent].state is NodeState.RUNNING
