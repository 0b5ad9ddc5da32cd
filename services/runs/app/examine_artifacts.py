"""What checks find in artifacts: each is measured where its bytes are, and judged by pure rules (GATE-1, RUN-7)."""

from collections.abc import Sequence
from dataclasses import replace

from libs.faults.fault import Fault
from services.runs.app.check_change import passing
from services.runs.domain import judging
from services.runs.domain.expressions import Unresolved, resolve
from services.runs.domain.inputs import looked_at, own, scope_of
from services.runs.domain.judging import SOUND, Facts
from services.runs.domain.plan import Check, Plan
from services.runs.domain.run import Artifact, Node, Run
from services.runs.domain.task_view import Finding
from services.runs.ports import Examiner

NOTHING = "there is no file to look at"
TEXT = "text"
"""The check for which somebody else is asked."""


class Inspector:
    """Runs the checks of a node on what it, or others, made."""

    def __init__(self, examiner: Examiner) -> None:
        self._examiner = examiner

    async def findings(self, plan: Plan, run: Run, node: Node, made: Sequence[Artifact] | None = None) -> list[Finding]:
        """One finding for each artifact and check: of what the node made, or of what a check node looks at. What is not
        sound is judged no further; a check that has nothing to look at, or that nobody will ever be able to judge, has
        not passed. Faults that another moment mends: of the store, and of routing where a text is to be read."""
        declared = plan.spec(node.id).checks
        try:
            checks = _resolved(plan, run, node, declared)
            chosen = looked_at(plan, run, node) if made is None else ((node.id, made),)
        except Unresolved as missing:
            return [Finding(node.id, check.name, str(missing)) for check in declared]
        others = {sha256: await self._facts(run, sha256) for sha256 in judging.compared(checks)}
        found: list[Finding] = []
        for name, artifacts in chosen:
            for artifact in artifacts:
                found += await self._look(run, name, artifact, checks, others)
        return found or [Finding(node.id, check.name, NOTHING) for check in declared]

    async def _look(
        self, run: Run, name: str, artifact: Artifact, checks: Sequence[Check], others: dict[str, Facts]
    ) -> list[Finding]:
        readers = judging.readers(checks)
        try:
            return _judged(name, await self._examiner.examine(run.tenant, artifact, readers), checks, others)
        except Fault as fault:
            if passing(fault) or not readers:
                raise
            return [Finding(name, TEXT, f"{artifact.sha256[:12]} cannot be judged: {fault.code}: {fault.message}")]

    async def _facts(self, run: Run, sha256: str) -> Facts:
        return await self._examiner.examine(run.tenant, Artifact(sha256, "", 0), ())


def _resolved(plan: Plan, run: Run, node: Node, declared: Sequence[Check]) -> list[Check]:
    scope = scope_of(plan, run, node)
    return [
        replace(check, argument=own(run, f"{check.name} of {node.id}", resolve(check.argument, scope)))
        for check in declared
    ]


def _judged(name: str, facts: Facts, checks: Sequence[Check], others: dict[str, Facts]) -> list[Finding]:
    seen = Artifact(facts.sha256, facts.media_type, facts.size_bytes)
    if broken := judging.verified(facts):
        return [Finding(name, SOUND, f"{facts.sha256[:12]} {broken}", seen)]
    reasons = ((check.name, judging.judge(check, facts, others)) for check in checks)
    told = ((check, f"{facts.sha256[:12]} {reason}" if reason else "") for check, reason in reasons)
    return [Finding(name, check, reason, seen) for check, reason in told] or [Finding(name, SOUND, "", seen)]
