"""`make sim`: many worlds over several processes, every violation with its seed and commit, and what it all came to."""

import argparse
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from tests.simulation.batch import Tally, be_quiet, play_all, summary, tally_of
from tests.simulation.simulate import commit, play

LINES = 100
"""How often progress is told where nobody watches a bar."""


class Told(Protocol):
    """Hears of each portion that is done."""

    def __call__(self, tally: Tally) -> None: ...


def main() -> int:
    """Exit code 1 when a law was broken in any world."""
    parser = argparse.ArgumentParser(prog="sim", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="how many worlds")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--seed", type=int, help="this world only, with its whole trace")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes that play")
    given = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":  # sets of names are in one order then, whoever replays
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, "PYTHONHASHSEED": "0"})
    be_quiet()
    if given.seed is not None:
        return _one(given.seed)
    return _many(range(given.first, given.first + given.seeds), given.workers)


def _one(seed: int) -> int:
    report = play(seed)
    verdict = f"violations: {', '.join(report.breaches) or 'none'}"
    sys.stdout.write("\n".join([report.words(len(report.trace)), *summary(tally_of(report)), verdict]) + "\n")
    return 1 if report.breaches else 0


def _many(seeds: range, workers: int) -> int:
    begun, at = time.monotonic(), commit()
    sys.stdout.write(f"seeds {seeds[0]}..{seeds[-1]}, commit {at}, {max(workers, 1)} processes\n")
    sys.stdout.flush()
    with _progress(len(seeds)) as told:
        tally = play_all(seeds, workers, told)
    wall_s = time.monotonic() - begun
    lines = [*summary(tally), f"{wall_s:.1f} s of the clock, {tally.count / wall_s:.1f} worlds a second"]
    lines += [tally.violations[seed] for seed in sorted(tally.violations)]
    failed = ", ".join(map(str, sorted(tally.violations)))
    lines.append(f"violations: {f'in the worlds of seeds {failed}, commit {at}' if failed else 'none'}")
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if tally.violations else 0


@contextmanager
def _progress(total: int) -> Iterator[Told]:
    """A bar on a terminal, a line now and then elsewhere."""
    console = Console(stderr=True)
    if console.is_terminal:
        with Progress(TextColumn("worlds"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[broken]}"),
                      TimeRemainingColumn(), console=console) as bar:  # fmt: skip
            task = bar.add_task("worlds", total=total, broken="")
            broken: set[int] = set()

            def drawn(tally: Tally) -> None:
                broken.update(tally.violations)
                bar.update(task, advance=tally.count, broken=f"violations: {len(broken)}")

            yield drawn
        return
    done, next_line = 0, 0

    def written(tally: Tally) -> None:
        nonlocal done, next_line
        done += tally.count
        if tally.violations:
            sys.stderr.write(f"violations: seeds {', '.join(map(str, tally.violations))}\n")
        if done * LINES >= next_line * total:
            next_line = done * LINES // total + 1
            sys.stderr.write(f"{done} of {total} worlds\n")
        sys.stderr.flush()

    yield written


if __name__ == "__main__":
    sys.exit(main())
