"""How long records have been silent: counted by any number of processes, and by no clock that steps."""

import random
from dataclasses import dataclass, field, replace

import pytest

from services.routing.app.keep_pulse import KeepPulse
from services.routing.app.reconcile_uncertain import reconcile
from services.routing.domain.catalog import Channel, Supply
from services.routing.domain.silence import PULSE_S, began, lasted_s
from services.routing.domain.task import Attempt
from services.routing.ports import Reconciled
from services.routing.store.tasks_memory import MemoryTasks
from tests.support.worlds import START
from tests.unit.routing.dispatch_fakes import FakeProvider, Stage, stage

UNKNOWN = Reconciled("unknown", "", "not listed yet")


@dataclass
class Listener(FakeProvider):
    """Keeps for how long the records could have told, at each question."""

    heard: list[float] = field(default_factory=list)

    async def reconcile(self, channel: Channel, supply: Supply, attempt: Attempt, silent_s: float) -> Reconciled:
        """As scripted."""
        self.heard.append(silent_s)
        return await super().reconcile(channel, supply, attempt, silent_s)


async def alive(**settings: object) -> tuple[Stage, KeepPulse]:
    """A process over a database that lives, and what counts there."""
    play = stage(**settings)
    await play.desk.store.life("one", START)
    return play, KeepPulse(play.desk)


async def counted(play: Stage, pulse: KeepPulse, seconds: int) -> None:
    """So many seconds in which one process counts."""
    for _ in range(seconds):
        await pulse.tick()
        play.clock.advance(PULSE_S)
    await pulse.tick()


def test_what_lasted_is_never_more_than_was_counted():
    """ATT-6, VER-6: not the pulse that may have begun before; nothing where nobody has begun to count."""
    assert [lasted_s(since, 50) for since in (None, 60, 50, 49, 10)] == [0.0, 0.0, 0.0, 0.0, 39 * PULSE_S]
    assert [began(50, ago_s) for ago_s in (0.0, 0.9, 30.5, 80.0)] == [50, 50, 20, -30]


@pytest.mark.parametrize("seed", range(5))
async def test_a_pulse_is_never_faster_than_time(seed: int):
    """ATT-6, VER-6: however many count, at whatever moments, standing still or stepping their clocks: there are never
    more pulses than seconds; while somebody counts they do not fall far behind."""
    rng, store = random.Random(seed), MemoryTasks()
    play, _ = await alive(store=store)
    counters = [KeepPulse(stage(like=play, worker=f"w{number}").desk) for number in range(4)]
    passed, quiet_until = 0.0, [0.0] * len(counters)
    while passed < 300.0:
        step_s = rng.uniform(0.0, 0.6)
        passed += step_s
        play.clock.advance(step_s)
        play.clock.off_s = rng.choice((0.0, 3600.0, -3600.0))
        which = rng.randrange(len(counters))
        if rng.random() < 0.02:
            quiet_until[which] = passed + rng.uniform(1.0, 60.0)
        if passed >= quiet_until[which]:
            await counters[which].tick()
        assert await store.pulse() * PULSE_S <= passed
    assert await store.pulse() * PULSE_S > passed / 4


@pytest.mark.parametrize("off_s", [3600.0, -3600.0, 0.0])
async def test_a_step_of_the_clock_makes_no_silence(off_s: float):
    """ATT-6, VER-6: it counts from when the answer was lost, however the wall clock has been stepped since."""
    play, pulse = await alive()
    listener = Listener(verdicts=[UNKNOWN] * 2)
    await counted(play, pulse, 5)
    play.provider.answers["a/clip"] = [None]
    await play.submit()
    await play.work()
    play.clock.off_s = off_s
    task = await play.task()
    await counted(play, pulse, 9)
    for moment in (9, 21):
        claimed = await play.desk.store.claim_one(task.id, "w", play.desk.now(), play.desk.in_s(-1.0))
        await reconcile(replace(play.desk, provider=listener), claimed, claimed.live)
        assert listener.heard[-1] == moment - 1
        await counted(play, pulse, 12)
