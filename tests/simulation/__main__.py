"""`make sim`: many worlds, a line for each that fails, a summary."""

import argparse
import logging
import os
import sys
import time
from collections import Counter

from tests.simulation.simulate import play


def main() -> int:
    """Exit code 1 when a law was broken in any world."""
    parser = argparse.ArgumentParser(prog="sim", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="how many worlds")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--seed", type=int, help="this world only, with its whole trace")
    given = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":  # sets of names are in one order then, whoever replays
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, "PYTHONHASHSEED": "0"})
    logging.getLogger().addHandler(logging.NullHandler())
    logging.getLogger().setLevel(logging.ERROR)
    seeds = [given.seed] if given.seed is not None else range(given.first, given.first + given.seeds)
    return _play_all(list(seeds), traced=100_000 if given.seed is not None else 40)


def _play_all(seeds: list[int], traced: int) -> int:
    begun, runs, virtual_s = time.monotonic(), 0, 0.0
    counts: Counter[str] = Counter()
    failed = []
    for seed in seeds:
        report = play(seed)
        counts += report.counts
        runs, virtual_s = runs + report.runs, virtual_s + report.virtual_s
        if report.breaches:
            failed.append(seed)
        if report.breaches or len(seeds) == 1:
            sys.stdout.write(report.words(traced) + "\n")
            sys.stdout.flush()
    wall_s = time.monotonic() - begun
    figures = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    sys.stdout.write(f"what happened: {figures}\n")
    sys.stdout.write(
        f"{len(seeds)} worlds, {runs} runs, {virtual_s / 3600:.1f} simulated hours in {wall_s:.1f} s "
        f"({runs / wall_s:.0f} runs a second); failed seeds: {failed or 'none'}\n"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
