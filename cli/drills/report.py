"""What a drill reports: how long it took to recover, what was lost, what was paid twice, what was left lying."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from cli.demo.facts import Facts

ENDED = frozenset({"succeeded", "failed", "cancelled"})
"""States of a node that nobody has to carry on."""
NOBODY = ""


@dataclass(slots=True)
class Report:
    """Of one drill. It keeps its promise if every fact holds; the four measures are facts too."""

    drill: str
    fault: str
    noticed_s: float | None = None
    """Seconds from the fault to the first sign of it for an operator or caller; None = nobody has to see it."""
    recovery_s: float | None = None
    """Seconds from the fault, or where it lasts from its end, to all work being done."""
    data_lost: list[str] = field(default_factory=list)
    double_charges: int = 0
    unbooked_charges: int = 0
    """Jobs in the providers' ledger that no attempt of ours stands for."""
    orphan_nodes: list[str] = field(default_factory=list)
    facts: Facts = field(default_factory=Facts)

    @property
    def kept(self) -> bool:
        """Whether the promise was kept."""
        return not self.facts.broken

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "drill": self.drill,
            "fault": self.fault,
            "noticed_s": _rounded(self.noticed_s),
            "recovery_s": _rounded(self.recovery_s),
            "data_lost": self.data_lost,
            "double_charges": self.double_charges,
            "unbooked_charges": self.unbooked_charges,
            "orphan_nodes": self.orphan_nodes,
            "kept": self.kept,
            "facts": [{"claim": item.claim, "held": item.held, "seen": item.seen} for item in self.facts.facts],
        }


def judge(
    report: Report,
    runs: Iterable[Mapping[str, Any]],
    tasks: Iterable[Mapping[str, Any]],
    ledger: Mapping[str, Any],
    *,
    lost: Iterable[str] = (),
    unbooked: int = 0,
) -> None:
    """Fill in the measures from both books and the Runs, and hold them against the promise: nothing paid twice, no
    node without a carrier, and lost or unbooked what this fault takes and no more."""
    report.orphan_nodes = orphans(runs)
    report.double_charges, report.unbooked_charges = charges(tasks, ledger)
    report.facts.equal("jobs paid twice", report.double_charges, 0)
    report.facts.equal("jobs that no attempt of ours stands for", report.unbooked_charges, unbooked)
    report.facts.equal("nodes that nobody carries on", report.orphan_nodes, [])
    report.facts.equal("data lost", sorted(report.data_lost), sorted(lost))
    report.facts.check("it recovered", report.recovery_s is not None, "yes", "all work done in time")


def orphans(runs: Iterable[Mapping[str, Any]]) -> list[str]:
    """Nodes that have not ended although their Run has, or whose Run has not come to rest."""
    return [
        f"{run['id']}/{node['id']} {node['status']}"
        for run in runs
        for node in run["nodes"]
        if node["status"] not in ENDED
    ]


def charges(tasks: Iterable[Mapping[str, Any]], ledger: Mapping[str, Any]) -> tuple[int, int]:
    """(charged jobs beyond the first of a Task; charged jobs of no Task)."""
    owner = {attempt["client_token"]: task["id"] for task in tasks for attempt in task["attempts"]}
    charged: Counter[str] = Counter()
    for job in ledger["submissions"]:
        if Decimal(job["charged"]["amount"]):
            told = (owner[job[name]] for name in ("client_token", "safety_identifier") if job[name] in owner)
            charged[next(told, NOBODY)] += 1
    nobodys = charged.pop(NOBODY, 0)
    return sum(count - 1 for count in charged.values()), nobodys


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)
