"""A few worlds in every test run; `make sim SEEDS=10000` plays more of them."""

from dataclasses import replace

import pytest

from tests.simulation.batch import Tally, play_all, play_some, summary
from tests.simulation.misfortune import Temper
from tests.simulation.mutants import DYING_RUNS, SLOW, STEPPING
from tests.simulation.simulate import play
from tests.simulation.world import Planted

SEEDS = (*range(1, 17), 65, 82)
"""65 had a Task come to life behind its cancelled Run, 82 a decision by the prices of another revision."""
PRODUCING = (54, 58, 61, 115)
"""54 and 58 had a Task reported missing that another replica had just begun, 115 a process that began while the
database was away and never sent anything."""
DYING_ADAPTER = Temper(0.5, {"kill": 1.0, "mood": 1.0}, (SLOW,), {"provider_adapter": 1.0})


@pytest.mark.parametrize("seed", SEEDS)
def test_no_law_is_broken(seed: int) -> None:
    """VER-4, VER-7: whatever this seed does to processes, wire, database and providers, every checker is content."""
    report = play(seed)
    assert not report.breaches, report.words()


def test_no_law_is_broken_at_full_size() -> None:
    """VER-4, VER-7: nor is it in a world with the usual settings, all accounts and many orders."""
    report = play(2, Planted(size="large"))
    assert not report.breaches, report.words()
    assert report.seen["runs"] >= 6


@pytest.mark.parametrize("seed", PRODUCING)
def test_no_law_is_broken_where_productions_are_made(seed: int) -> None:
    """VER-4, STEER-3, STEER-4, COST-11, RUN-6: nor where two productions are steered, paused, redriven and decided on,
    or left alone, while processes die: money balances, every input ends once, everything comes to rest."""
    report = play(seed, Planted(size="small", productions=2, temper=DYING_RUNS))
    assert not report.breaches, report.words()
    assert report.faults["productions"] == 2


@pytest.mark.parametrize("seed", [10, 11, 12])
def test_a_slow_provider_gets_no_second_job_when_the_adapter_dies(seed: int) -> None:
    """ATT-6: while the provider may still take the job, its absence from the records proves nothing."""
    report = play(seed, Planted(temper=DYING_ADAPTER))
    assert not report.breaches, report.words()


@pytest.mark.parametrize("seed", [3, 6])
def test_a_clock_that_steps_makes_no_second_job(seed: int) -> None:
    """VER-6, ATT-6, VER-7: all processes follow minutes forward, one after the other, again and again, while slow
    providers have not listed what is on its way and senders die: its absence proves nothing, and every Run ends."""
    report = play(seed, replace(STEPPING, productions=0))
    assert not report.breaches, report.words()
    assert report.faults["misfortune step"], "no clock was stepped"


def test_a_seed_replays_its_world() -> None:
    """VER-4: seed and commit give the same story, to the last event, also after another world was played."""
    first = play(3)
    play(8)
    again = play(3)
    assert again.digest == first.digest
    assert (again.virtual_s, again.faults, again.seen) == (first.virtual_s, first.faults, first.seen)


def test_several_processes_come_to_the_same() -> None:
    """VER-4: how many processes play them changes nothing about the worlds, and none is lost or counted twice."""
    portions: list[int] = []
    spread = play_all(range(1, 5), 2, lambda tally: portions.append(tally.count), chunk=2)
    alone = play_some(range(3, 5))
    alone.add(play_some(range(1, 3)))
    assert (spread.worlds, spread.seen, spread.faults) == (alone.worlds, alone.seen, alone.faults)
    assert (sum(portions), spread.count) == (4, 4)


def test_what_never_happened_is_said() -> None:
    """VER-4: a law that had nothing to judge in these worlds is named, not counted as kept."""
    tally = Tally()
    tally.seen["events"] = 3
    last = summary(tally)[-1]
    assert last.startswith("never happened")
    assert "uncertain submissions" in last
    assert "events" not in last
