"""Runs a Supply's regression set and keeps the verdict (CAT-7).

Every request of the set is a Task (or a synchronous call) like any other: selected, reserved, submitted once, paid and
on record, only under a model that binds this Supply alone. So a verification survives whatever a Task survives, and
whoever names its id again goes on with it.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import msgspec

from libs.faults.fault import Fault
from libs.kernel.canonical import canonical_json
from libs.kernel.money import Money
from services.routing.app.calls.call_desk import CallDesk
from services.routing.app.calls.invoke import invoke
from services.routing.app.calls.open_call import Asked
from services.routing.app.desk import Desk
from services.routing.domain.calls.call import Call, CallState
from services.routing.domain.catalog import Kind, Supply
from services.routing.domain.catalog_file import ObjectKind
from services.routing.domain.regression import (
    ANSWERED,
    PICTURE,
    SIGN,
    WRITTEN,
    Case,
    answer_shortcomings,
    set_of,
    shortcomings,
)  # fmt: skip
from services.routing.domain.request import Request
from services.routing.domain.task import TERMINAL_TASKS, Task, TaskState
from services.routing.domain.trial import trial_of
from services.routing.domain.verification import Trial, Verification, VerificationState
from services.routing.ports import CatalogStore
from services.routing.ports.verification import Specimens, VerificationStore

TENANT = "verification"
DEADLINE_S = 900.0
LOOK_S, COST_LOOKS = 0.25, 20
TELL_S = 60.0
DONE = frozenset({VerificationState.PASSED, VerificationState.FAILED})


@dataclass(frozen=True, slots=True)
class VerifySupply:
    """The use-case with what it needs."""

    desk: Desk
    catalog: CatalogStore
    verifications: VerificationStore
    specimens: Specimens
    calls: CallDesk
    under_way: dict[str, asyncio.Future[Verification]] = field(default_factory=dict)
    """Verifications whose calls this process makes, by id: whoever leaves ends none of them."""

    async def __call__(self, supply_id: str, verification_id: str, wait_s: float) -> Verification:
        """The verification as it stands when it has ended, or after `wait_s`.

        Faults: `not_found` for a Supply that is not in force; `idempotency_conflict` for an id of another Supply's.
        """
        known = await self.verifications.get(verification_id)
        if known is None:
            known = await self.verifications.add(await self._begun(supply_id, verification_id))
        if known.supply != supply_id:
            raise Fault.of("idempotency_conflict", f"verification {verification_id!r} is of supply {known.supply!r}")
        clock = self.desk.world.clock
        until = clock.monotonic() + wait_s
        while True:
            known = await (self._called(known) if known.trials[0].call_id else self._looked_at(known))
            left_s = until - clock.monotonic()
            if known.state in DONE or left_s <= 0:
                return known
            await clock.sleep(min(LOOK_S, left_s))

    async def _begun(self, supply_id: str, verification_id: str) -> Verification:
        catalog = await self.desk.catalog.newest()
        supply = catalog.supplies.get(supply_id)
        if supply is None:
            raise Fault.of("not_found", f"there is no supply {supply_id!r} in the catalogue")
        cases = await self._cases(supply)
        pictures = {
            word: await self.specimens.picture(words)
            for word, words in ((PICTURE, ""), (SIGN, WRITTEN))
            if any(_asks_for(word, case.input) for case in cases)
        }
        trials = tuple(
            _trial(supply.kind, case, f"{verification_id}-{number}", pictures) for number, case in enumerate(cases, 1)
        )
        made = (supply.upstream_model, supply.capability_version)
        return Verification(verification_id, supply_id, *made, self.desk.now(), trials=trials)

    async def _cases(self, supply: Supply) -> tuple[Case, ...]:
        declared = await self.catalog.object(ObjectKind.SUPPLY, supply.id)
        return set_of(supply, declared.spec.get("regression") or () if declared else ())

    # --- Kinds that are answered while the caller waits ---------------------------------------------------------------

    async def _called(self, known: Verification) -> Verification:
        """The calls as an errand of ours: one verification makes its calls once, whoever asks and leaves."""
        known = await self.verifications.get(known.id) or known
        if known.state in DONE:
            return known
        errand = self.under_way.get(known.id)
        if errand is None:
            errand = self.under_way[known.id] = self.desk.errands.begin(self._answered(known))
            errand.add_done_callback(lambda _: self.under_way.pop(known.id, None))
        return errand.result() if errand.done() else known

    async def _answered(self, known: Verification) -> Verification:
        trials = tuple([await self._call(known, trial) for trial in known.trials])
        seen = known.settled(trials, self.desk.now())
        return await self.verifications.settle(seen) if seen.state in DONE else seen

    async def _call(self, known: Verification, trial: Trial) -> Trial:
        catalog = await self.desk.catalog.newest()
        supply = catalog.supplies.get(known.supply)
        reasons: tuple[str, ...]
        made = await self.calls.store.get(trial.call_id)
        if made is not None and not self._is_lost(made[0], known):
            return trial
        if made is not None:
            reasons = ("its answer is not on record: verify the supply again",)
        elif supply is None:
            reasons = ("the supply is in the catalogue no more",)
        else:
            name, text = trial_of(known.supply), canonical_json(trial.input)
            asked = Asked(trial.call_id, TENANT, name, text, degradation="strict", skip_cache=True, trial=True)
            try:
                output, _ = await invoke(self.calls, asked)
                reasons = tuple(answer_shortcomings(supply.kind, trial.expect, msgspec.json.decode(output)))
            except Fault as fault:
                reasons = (f"{fault.code}: {fault.message}",)
        state = VerificationState.FAILED if reasons else VerificationState.PASSED
        return replace(trial, state=state, reasons=reasons, cost=await self._cost_of(trial.call_id))

    def _is_lost(self, call: Call, known: Verification) -> bool:
        """Whether whoever made the call will not tell of it any more: another process, that takes its answer along."""
        now = self.desk.now()
        told_by = call.finished_at + timedelta(seconds=TELL_S) if call.finished_at else None
        return now > (told_by or known.started_at + timedelta(seconds=DEADLINE_S))

    async def _cost_of(self, call_id: str) -> Money | None:
        """What a call has cost, once that is on record; it is settled a moment after its answer."""
        for _ in range(COST_LOOKS):
            found = await self.calls.store.get(call_id)
            if found is not None and found[0].state is not CallState.RUNNING:
                return found[0].cost
            await self.desk.world.clock.sleep(LOOK_S)
        return None

    # --- Kinds that give files ----------------------------------------------------------------------------------------

    async def _looked_at(self, known: Verification) -> Verification:
        """With what has come of its Tasks by now, kept when that was the last of them."""
        if known.state in DONE:
            return known
        trials = tuple([await self._tried(known, trial) for trial in known.trials])
        seen = known.settled(trials, self.desk.now())
        return await self.verifications.settle(seen) if seen.state in DONE else seen

    async def _tried(self, known: Verification, trial: Trial) -> Trial:
        if trial.state in DONE:
            return trial
        task = await self.desk.store.get(trial.task_id) or await self._handed_over(known, trial)
        if task.state not in TERMINAL_TASKS:
            return trial
        reasons = await self._reasons(trial, task)
        state = VerificationState.FAILED if reasons else VerificationState.PASSED
        return replace(trial, state=state, reasons=reasons, cost=task.spent)

    async def _handed_over(self, known: Verification, trial: Trial) -> Task:
        catalog = await self.desk.catalog.newest()
        kind = _kind(catalog.supplies.get(known.supply))
        deadline = known.started_at + timedelta(seconds=DEADLINE_S)
        request = Request(TENANT, trial_of(known.supply), trial.input, degradation="strict", deadline=deadline)
        task = Task.begun(trial.task_id, request, kind, catalog.currency, self.desk.now())
        task = await self.desk.store.add(task)
        self.desk.bell.ring()
        return task

    async def _reasons(self, trial: Trial, task: Task) -> tuple[str, ...]:
        if task.state is not TaskState.SUCCEEDED or task.result is None:
            failure = task.failure
            return (f"{failure.code}: {failure.message}" if failure else f"ended {task.state}",)
        files = [await self.specimens.measures(artifact.sha256) for artifact in task.result.artifacts]
        unread = [f"file {number} {seen}" for number, seen in enumerate(files, 1) if isinstance(seen, str)]
        return (*unread, *shortcomings(trial.expect, [seen for seen in files if not isinstance(seen, str)]))


def _kind(supply: Supply | None) -> str:
    return str(supply.kind) if supply else ""


def _trial(kind: Kind, case: Case, name: str, pictures: Mapping[str, str]) -> Trial:
    given = _with_pictures(case.input, pictures)
    if kind in ANSWERED:
        return Trial(case.name, "", given, case.expect, call_id=name)
    return Trial(case.name, name, given, case.expect)


def _asks_for(word: str, value: Any) -> bool:
    if isinstance(value, Mapping):
        return value.get("artifact") == word or any(_asks_for(word, item) for item in value.values())
    return isinstance(value, list | tuple) and any(_asks_for(word, item) for item in value)


def _with_pictures(value: Any, pictures: Mapping[str, str]) -> Any:
    """The input with the digests of our pictures where a set says `picture` or `sign`."""
    if isinstance(value, Mapping):
        return {
            name: pictures[item] if name == "artifact" and item in pictures else _with_pictures(item, pictures)
            for name, item in value.items()
        }
    return [_with_pictures(item, pictures) for item in value] if isinstance(value, list | tuple) else value
