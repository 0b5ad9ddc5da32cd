"""Run nodes again, on the same node with all its history, or tell what that would touch and cost (DLQ-1, STALE-1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from libs.faults.fault import Fault
from libs.kernel.money import Money
from services.runs.app.check_change import outlooks, refuse_change
from services.runs.app.command_run import Desk, refuse_clash
from services.runs.app.find_run import find_run
from services.runs.app.plans import Plans
from services.runs.domain import amounts, commands
from services.runs.domain.ending import stopping
from services.runs.domain.history import applied
from services.runs.domain.plan import Kind, Plan
from services.runs.domain.run import Draft, Run, RunState
from services.runs.domain.staleness import touched


@dataclass(frozen=True, slots=True)
class Redrive:
    """What is asked for. `node` "" = everything that failed."""

    node: str = ""
    reason: str = ""
    who: str = ""
    input: Mapping[str, Any] | None = None
    supply: str = ""
    command_id: str = ""


@dataclass(frozen=True, slots=True)
class Touched:
    """A node that a redrive reaches: `redriven`, `stale` or `kept`; `cost` at most, None where nobody can say."""

    node: str
    effect: str
    cost: Money | None = None


async def redrive_run(
    desk: Desk, plans: Plans, tenant: str, run_id: str, asked: Redrive
) -> tuple[Run, list[Touched], bool]:
    """(the Run, at work again; what that reaches; whether that command had been applied before).

    Faults: not_found for a node that is not there, conflict for one that is at work or a Run that has nothing to
    redrive, validation_failed for a change without a node, or one with which nobody could serve it.
    """
    before = await find_run(desk.runs, tenant, run_id)
    refuse_clash(before, asked.command_id)
    reached = await preview(desk, plans, before, asked) if not commands.known(before, asked.command_id) else []

    def decide(run: Run) -> Sequence[Draft]:
        _refuse_late(desk, plans, run)
        plan = plans.of(run)
        return commands.redriven(
            plan,
            run,
            _targets(plan, run, asked),
            asked.reason,
            who=asked.who,
            changes=asked.input,
            supply=asked.supply,
            command_id=asked.command_id,
        )

    run, replayed = await desk.command(tenant, run_id, asked.command_id, decide)
    return run, reached, replayed


def _refuse_late(desk: Desk, plans: Plans, run: Run) -> None:
    """Past its deadline a production would end at once, with its case files closed and nothing made."""
    plan = plans.of(run)
    if not plan.single and not run.cancel_requested and (why := stopping(plan, run, desk.world.clock.now())):
        raise Fault.of("conflict", f"{why}: nothing of run {run.id} can be made any more; make a new run")


def _targets(plan: Plan, run: Run, asked: Redrive) -> list[str]:
    if run.production is None and run.state not in (RunState.FAILED, RunState.TIMED_OUT):
        raise Fault.of("conflict", f"run {run.id} is {run.state}; a single generation is redriven after it has failed")
    if run.state is RunState.CANCELLED or run.cancel_requested:
        raise Fault.of("run_terminal", f"run {run.id} was cancelled; make a new one")
    if not asked.node:
        if asked.input or asked.supply:
            raise Fault.invalid(("/node", "is required with input or supply"))
        if targets := commands.failed_nodes(run):
            return targets
        raise Fault.of("conflict", f"nothing of run {run.id} has failed")
    node = run.nodes.get(asked.node)
    if node is None:
        raise Fault.of("not_found", f"run {run.id} has no node {asked.node!r}")
    if (asked.input or asked.supply) and (reason := commands.why_not_changed(node)):
        raise Fault.invalid(("/node", reason))
    if reason := commands.why_not_redriven(node) or commands.what_is_missing(plan, run, node):
        raise Fault.of("conflict", reason)
    return [asked.node]


async def preview(desk: Desk, plans: Plans, run: Run, asked: Redrive) -> list[Touched]:
    """What a redrive would reach, in the order of the graph, with the most that it may cost. Faults as for one."""
    plan = plans.of(run)
    _refuse_late(desk, plans, run)
    targets = _targets(plan, run, asked)
    drafts = commands.redriven(plan, run, targets, "", changes=asked.input, supply=asked.supply)
    after = applied(run, drafts, desk.world.clock.now())
    again, changed = list(drafts[-1].data["nodes"]), list(drafts[-1].data["changed"])
    stale: dict[str, None] = {}
    kept: dict[str, None] = {}
    for target in targets:
        finished, later = touched(plan, run, target)
        stale |= dict.fromkeys(finished)
        kept |= dict.fromkeys(later)
    effects = {**dict.fromkeys(kept, "kept"), **dict.fromkeys(stale, "stale"), **dict.fromkeys(again, "redriven")}
    lively = [name for name in run.nodes if effects.get(name, "kept") != "kept"]
    made = [name for name in lively if plan.spec(name).kind is Kind.GENERATE]
    told = await outlooks(desk.routing, plan, after, dict.fromkeys([*made, *changed]))
    refuse_change(told, changed)
    costs = {name: told[name].worst for name in made}
    return [Touched(name, effects[name], costs.get(name)) for name in run.nodes if name in effects]


def total(reached: Sequence[Touched]) -> Money | None:
    """What it may cost together."""
    cost = None
    for each in reached:
        cost = amounts.added(cost, each.cost)
    return cost
