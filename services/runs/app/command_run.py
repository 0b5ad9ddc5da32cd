"""Pause, resume, cancel and steer: durable commands on a Run, each kept with an id (RUN-8, STEER-1)."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from libs.faults.fault import Fault
from libs.kernel.canonical import digest
from libs.kernel.world import World
from services.runs.app.find_run import find_run
from services.runs.app.judge_steering import judge_steering, refuse_malformed
from services.runs.app.plans import Plans
from services.runs.app.recording import Recorder, insist
from services.runs.domain import commands
from services.runs.domain.run import AT_WORK, TERMINAL_STATES, Draft, Run, RunState
from services.runs.ports import Budgets, Routing, Runs

PENDING_STEERING_MOST = 1_000

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Desk:
    """What every command needs."""

    runs: Runs
    routing: Routing
    recorder: Recorder
    world: World
    budgets: Budgets

    async def change(self, tenant: str, run_id: str, decide: Callable[[Run], Sequence[Draft]]) -> Run:
        """The tenant's Run after what `decide` makes of it, committed. Fault not_found for another's."""
        return await insist(self.recorder, lambda: find_run(self.runs, tenant, run_id), decide)

    async def command(
        self, tenant: str, run_id: str, command_id: str, decide: Callable[[Run], Sequence[Draft]]
    ) -> tuple[Run, bool]:
        """(the Run after it, whether that command had been applied before and nothing was done). Faults as `change`;
        idempotency_conflict for an id that came before with another body."""
        known = False

        def once(run: Run) -> Sequence[Draft]:
            nonlocal known
            refuse_clash(run, command_id)
            known = commands.known(run, command_id)
            return () if known else decide(run)

        return await self.change(tenant, run_id, once), known


class Steered(NamedTuple):
    """An accepted input: its id, its sequence within the Run, whether it had been accepted before, and the Run."""

    id: str
    sequence: int
    replayed: bool
    run: Run


def refuse_clash(run: Run, command_id: str) -> None:
    """Fault idempotency_conflict for an id that came before with another body (IDEM-1)."""
    if commands.clashes(run, command_id):
        key = command_id.rpartition("#")[0].partition(":")[2]
        raise Fault.of("idempotency_conflict", f"key {key!r} came before with another body")


async def cancel_run(
    desk: Desk, tenant: str, run_id: str, reason: str = "", command_id: str = "", *, who: str = ""
) -> Run:
    """The Run with its cancel on record; the ticks carry it out.

    A pending Run is not ended here: its Task may be on its way to routing, and would be served and paid for with nobody
    left to cancel it. Fault run_terminal for a Run that ended otherwise. Cancelling twice is harmless.
    """

    def decide(run: Run) -> Sequence[Draft]:
        if run.state is RunState.CANCELLED or (run.cancel_requested and run.state not in TERMINAL_STATES):
            return ()
        _refuse_ended(run, "cancelled")
        return commands.cancelled(reason, who, command_id)

    run = await desk.change(tenant, run_id, decide)
    if run.state not in TERMINAL_STATES:
        await _hold_tasks(desk, run, paused=True)  # nothing more is sent while the ticks pass the cancel on
    return run


async def pause_run(
    desk: Desk, tenant: str, run_id: str, reason: str, command_id: str, *, who: str = ""
) -> tuple[Run, bool]:
    """(the Run, whether that command had been applied before). Nothing new is submitted from now on; what providers
    have is followed. Pausing twice is harmless.

    Fault run_terminal for a Run that has ended, or whose end was asked for.
    """

    def decide(run: Run) -> Sequence[Draft]:
        if run.state is RunState.PAUSED:
            return ()
        _refuse_ended(run, "paused")
        return commands.paused(reason, who, command_id)

    run, replayed = await desk.command(tenant, run_id, command_id, decide)
    if run.state is RunState.PAUSED:
        await _hold_tasks(desk, run, paused=True)
    return run, replayed


async def resume_run(
    desk: Desk, tenant: str, run_id: str, reason: str, command_id: str, *, who: str = ""
) -> tuple[Run, bool]:
    """(the Run, whether that command had been applied before). It goes on; resuming what is not paused is harmless.

    Fault run_terminal for a Run that has ended.
    """

    def decide(run: Run) -> Sequence[Draft]:
        _refuse_ended(run, "resumed")
        if run.state is not RunState.PAUSED:
            return ()
        return commands.resumed(run, reason, who, command_id, desk.world.ids.ulid)

    run, replayed = await desk.command(tenant, run_id, command_id, decide)
    if run.state is not RunState.PAUSED:
        await _hold_tasks(desk, run, paused=False)
    return run, replayed


async def steer_run(
    desk: Desk, plans: Plans, tenant: str, run_id: str, kind: str, data: Mapping[str, Any], command_id: str
) -> Steered:
    """The input on record, of whatever kind: not to be consumed is no error (STEER-3).

    Faults: run_terminal for a Run that has ended; validation_failed for data that is none, or with which a node that
    may take it could never be served.
    """
    told: list[tuple[str, int]] = []
    before = await find_run(desk.runs, tenant, run_id)
    refuse_clash(before, command_id)
    if not commands.known(before, command_id):
        _refuse_ended(before, "steered")
        refuse_malformed(data)
        await judge_steering(desk.routing, plans.of(before), before, kind, data)

    def decide(run: Run) -> Sequence[Draft]:
        told.clear()
        _refuse_ended(run, "steered")
        if len(run.steering) >= PENDING_STEERING_MOST:
            raise Fault.of("quota_exceeded", f"{len(run.steering)} steering inputs of run {run_id} wait already")
        drafts = commands.steered(run, kind, data, command_id, desk.world.ids.ulid)
        told.append((drafts[0].data["steering_event_id"], drafts[0].data["sequence"]))
        return drafts

    run, replayed = await desk.command(tenant, run_id, command_id, decide)
    steering_id, sequence = await _steered_before(desk, run, command_id, kind, data) if replayed else told[0]
    return Steered(steering_id, sequence, replayed, run)


async def _steered_before(desk: Desk, run: Run, command_id: str, kind: str, data: Mapping[str, Any]) -> tuple[str, int]:
    """What the command was answered with when it came first: its event is on record. Fault idempotency_conflict where
    it said something else then."""
    after = 0
    while events := await desk.runs.events(run.id, after, 500):
        for event in events:
            if event.kind == "run.steer.accepted" and event.data.get("command_id") == command_id:
                if (event.data["kind"], digest(event.data["data"])) != (kind, digest(data)):
                    told = (
                        f"command {command_id!r} of run {run.id} was another input; give another one its own request_id"
                    )
                    raise Fault.of("idempotency_conflict", told)
                return str(event.data["steering_event_id"]), int(event.data["sequence"])
        after = events[-1].sequence
    raise Fault.of("conflict", f"command {command_id!r} of run {run.id} was another one")


async def _hold_tasks(desk: Desk, run: Run, *, paused: bool) -> None:
    """Routing is told at once; the ticks tell it again if it is away."""
    ids = [node.task_id for node in run.nodes.values() if node.state in AT_WORK and node.task_id]
    if not ids:
        return
    try:
        await desk.routing.pause(ids, paused)
    except Fault as fault:  # the command is on record: what routing did not hear now, the ticks tell it
        log.warning("run_call_failed", extra={"run_id": run.id, "code": fault.code})


def _refuse_ended(run: Run, participle: str) -> None:
    if run.state in TERMINAL_STATES:
        raise Fault.of("run_terminal", f"run {run.id} is {run.state} and cannot be {participle}")
