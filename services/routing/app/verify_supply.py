"""Runs a Supply's regression set and keeps the verdict (CAT-7).

Every request of the set is a Task like any other: queued, selected, reserved, submitted once, paid and on record, only
under a model that binds this Supply alone. So a verification survives whatever a Task survives, and whoever names its
id again goes on with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from libs.faults.fault import Fault
from services.routing.app.desk import Desk
from services.routing.domain.catalog import Supply
from services.routing.domain.catalog_file import ObjectKind
from services.routing.domain.regression import FAMILIES, PICTURE, Case, set_of, shortcomings
from services.routing.domain.request import Request
from services.routing.domain.task import TERMINAL_TASKS, Task, TaskState
from services.routing.domain.trial import trial_of
from services.routing.domain.verification import Trial, Verification, VerificationState
from services.routing.ports import CatalogStore
from services.routing.ports.verification import Specimens, VerificationStore

TENANT = "verification"
DEADLINE_S = 900.0
LOOK_S = 0.25
DONE = frozenset({VerificationState.PASSED, VerificationState.FAILED})


@dataclass(frozen=True, slots=True)
class VerifySupply:
    """The use-case with what it needs."""

    desk: Desk
    catalog: CatalogStore
    verifications: VerificationStore
    specimens: Specimens

    async def __call__(self, supply_id: str, verification_id: str, wait_s: float) -> Verification:
        """The verification as it stands when it has ended, or after `wait_s`.

        Faults: `not_found` for a Supply that is not in force; `validation_failed` for one whose kind has no set;
        `idempotency_conflict` for an id that belongs to another Supply.
        """
        known = await self.verifications.get(verification_id)
        if known is None:
            known = await self.verifications.add(await self._begun(supply_id, verification_id))
        if known.supply != supply_id:
            raise Fault.of("idempotency_conflict", f"verification {verification_id!r} is of supply {known.supply!r}")
        clock = self.desk.world.clock
        until = clock.monotonic() + wait_s
        while True:
            known = await self._looked_at(known)
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
        picture = await self._picture(cases)
        trials = tuple(
            Trial(case.name, f"{verification_id}-{number}", _with_picture(case.input, picture), case.expect)
            for number, case in enumerate(cases, 1)
        )
        made = (supply.upstream_model, supply.capability_version)
        return Verification(verification_id, supply_id, *made, self.desk.now(), trials=trials)

    async def _cases(self, supply: Supply) -> tuple[Case, ...]:
        declared = await self.catalog.object(ObjectKind.SUPPLY, supply.id)
        cases = set_of(supply, declared.spec.get("regression") or () if declared else ())
        if not cases:
            text = f"supplies of kind {supply.kind} have no regression set; it is there for {', '.join(FAMILIES)}"
            raise Fault.invalid(("/supply_id", f"{text}. Set `evidence: waived` with an evidence_reason"))
        return cases

    async def _picture(self, cases: tuple[Case, ...]) -> str:
        wanted = any(_asks_for_picture(case.input) for case in cases)
        return await self.specimens.picture() if wanted else ""

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


def _asks_for_picture(value: Any) -> bool:
    if isinstance(value, Mapping):
        return value.get("artifact") == PICTURE or any(_asks_for_picture(item) for item in value.values())
    return isinstance(value, list | tuple) and any(_asks_for_picture(item) for item in value)


def _with_picture(value: Any, sha256: str) -> Any:
    """The input with the digest of our picture where a set says `picture`."""
    if isinstance(value, Mapping):
        return {
            name: sha256 if name == "artifact" and item == PICTURE else _with_picture(item, sha256)
            for name, item in value.items()
        }
    return [_with_picture(item, sha256) for item in value] if isinstance(value, list | tuple) else value
