"""One drill from an empty folder to its report."""

from collections.abc import Callable
from pathlib import Path

from cli.drills.acts import DRILLS, LOST_AFTER_BACKUP
from cli.drills.report import Report, judge
from cli.drills.theatre import Theatre


async def play(name: str, folder: Path, tell: Callable[[str], None]) -> Report:
    """Play it; its report, broken promises included. StageError where the stack does not come up or come to rest."""
    act = DRILLS[name]
    report = Report(name, fault_of(name))
    async with Theatre(folder, report, tell) as theatre:
        await act(theatre)
        tell("comparing both books")
        runs = await theatre.known()
        tasks, ledger = await theatre.tasks(runs), await theatre.ledger()
        lost = theatre.runs[-1:] if name == LOST_AFTER_BACKUP else []
        judge(report, runs, tasks, ledger, lost=lost, unbooked=len(lost))
    return report


def fault_of(name: str) -> str:
    """What the drill does, in a sentence or two."""
    return " ".join((DRILLS[name].__doc__ or "").split())
