"""Plays one world and judges it. Everything that happens in it follows from its seed and the commit."""

import gc
import hashlib
import logging
import subprocess
import warnings
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from tests.simulation.checkers import CHECKERS
from tests.simulation.exercised import exercised
from tests.simulation.loop import Stalled
from tests.simulation.world import Planted, Simulation

TRACED = 40


@dataclass(slots=True)
class Report:
    """What one seed came to. `digest` is of everything that happened: equal for equal seeds."""

    seed: int
    size: str
    breaches: dict[str, list[str]]
    faults: Counter[str]
    """What struck it, by kind."""
    seen: Counter[str]
    """What happened in it, see `exercised`."""
    trace: list[str]
    virtual_s: float
    digest: str

    def words(self, traced: int = TRACED) -> str:
        """The seed, the commit, what was broken, and the end of the trace."""
        lines = [f"seed {self.seed}, commit {commit()}; replay: make sim SEED={self.seed}"]
        lines += [f"  {law}: {text}" for law, texts in self.breaches.items() for text in texts[:8]]
        return "\n".join([*lines, *(f"    {line}" for line in self.trace[-traced:])])


class Logged(logging.Handler):
    """Keeps what contexts log at level error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        cause = f" ({record.exc_info[1]!r})" if record.exc_info else ""
        self.lines.append(f"{record.name}: {record.getMessage()}{cause}")


def play(seed: int, planted: Planted | None = None) -> Report:
    """One world, judged. Nothing is left of it afterwards."""
    logged, root = Logged(), logging.getLogger()
    level = root.level
    root.addHandler(logged)
    gc.disable()  # what a collection of cycles frees, and when, must not depend on what was played before
    gc.freeze()  # and the one at the end has only this world to look through
    world = Simulation(seed, planted or Planted())
    breaches: dict[str, list[str]] = {}
    seen: Counter[str] = Counter()
    try:
        story = world.play()
        story = replace(story, errors=[*logged.lines, *world.loop.failures])
        breaches = {law: found for law, check in CHECKERS.items() if (found := check(story))}
        seen = exercised(story)
    except Stalled as error:
        breaches = {"time_goes_on": [str(error)]}
    finally:
        root.removeHandler(logged)
        root.setLevel(level)
        faults = world.counts + world.outside.counts
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # what died before its first step was never awaited
            world.loop.close()
            gc.collect()
            gc.unfreeze()
            gc.enable()
    digest = hashlib.sha256("\n".join(world.trace).encode()).hexdigest()
    return Report(seed, world.shape.size, breaches, faults, seen, world.trace, world.loop.time(), digest)


def commit() -> str:
    """The commit of the tree, with `+` when it was changed since."""
    root = Path(__file__).resolve().parents[2]

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False).stdout.strip()

    return git("rev-parse", "--short", "HEAD") + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")
