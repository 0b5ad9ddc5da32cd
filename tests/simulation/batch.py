"""Many worlds, over several processes: what they came to, added up."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing import get_context

from tests.simulation.checkers import NEEDS
from tests.simulation.simulate import Report, play

CHUNK = 16
TOLD_FIRST = ("runs", "tasks", "attempts", "jobs at providers", "events")


@dataclass(slots=True)
class Tally:
    """What some worlds came to. `violations` is by seed: everything that is to be said about it."""

    worlds: Counter[str] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    virtual_s: float = 0.0
    violations: dict[int, str] = field(default_factory=dict)

    def add(self, other: "Tally") -> None:
        """Take the other's worlds in."""
        self.worlds += other.worlds
        self.seen += other.seen
        self.faults += other.faults
        self.virtual_s += other.virtual_s
        self.violations |= other.violations

    @property
    def count(self) -> int:
        """How many worlds."""
        return self.worlds.total()


def play_some(seeds: Sequence[int]) -> Tally:
    """These worlds, in this process. A world that the simulation itself cannot play is a violation too."""
    tally = Tally()
    for seed in seeds:
        tally.add(tally_of(play(seed)))
    return tally


def tally_of(report: Report) -> Tally:
    """One world's."""
    violations = {report.seed: report.words()} if report.breaches else {}
    return Tally(Counter([report.size]), report.seen, report.faults, report.virtual_s, violations)


def play_all(seeds: Sequence[int], workers: int, told: Callable[[Tally], None], chunk: int = CHUNK) -> Tally:
    """All worlds, over that many processes (1 or less: in this one); `told` hears of each portion of `chunk`."""
    whole = Tally()
    for tally in _portions(seeds, workers, chunk):
        whole.add(tally)
        told(tally)
    return whole


def _portions(seeds: Sequence[int], workers: int, chunk: int) -> Iterator[Tally]:
    portions = [seeds[start : start + chunk] for start in range(0, len(seeds), chunk)]
    if workers <= 1:
        yield from map(play_some, portions)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=be_quiet) as pool:
        futures: list[Future[Tally]] = [pool.submit(play_some, portion) for portion in portions]
        for future in as_completed(futures):
            yield future.result()


def be_quiet() -> None:
    """Contexts log into the simulation's own handler only, and nothing below an error."""
    logging.getLogger().addHandler(logging.NullHandler())
    logging.getLogger().setLevel(logging.ERROR)


def summary(tally: Tally) -> list[str]:
    """Worlds, Runs, faults by kind, and for each law how often it had something to judge."""
    sizes = ", ".join(f"{count} {size}" for size, count in sorted(tally.worlds.items()))
    counts = ", ".join(f"{name} {tally.seen[name]:,}" for name in TOLD_FIRST)
    lines = [
        f"worlds {tally.count:,} ({sizes}), {tally.virtual_s / 3600:,.1f} simulated hours",
        counts,
        f"faults struck: {_listed(tally.faults.items())}",
        "what each law had to judge:",
    ]
    happened = tally.seen + tally.faults
    for law, needs in NEEDS.items():
        lines.append(f"  {law}: {', '.join(f'{need} {happened[need]:,}' for need in needs)}")
    never = sorted({need for needs in NEEDS.values() for need in needs if not happened[need]})
    if never:
        lines.append(f"never happened in these worlds, so not put to the test: {', '.join(never)}")
    return lines


def _listed(items: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(items))
