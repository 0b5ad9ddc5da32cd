"""A process is killed at every effect of a Task's life in turn, and another one takes over."""

import asyncio
import contextlib
from typing import Any

import pytest

from libs.faults.fault import Fault
from services.routing.app.cancel_task import cancel_task
from services.routing.domain.task import TaskState
from services.routing.ports import Polled
from tests.unit.routing.dispatch_fakes import Stage, stage
from tests.unit.routing.dispatch_offers import catalog, supply


class Crash(BaseException):
    """The process is gone: nothing that it still wanted to do happens."""


class Mortal:
    """Counts the effects of one process and kills it at the n-th; dead, every effect of it fails."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.count = 0
        self.names: list[str] = []

    @property
    def dead(self) -> bool:
        """Whether it was killed."""
        return self.count >= self.at

    async def __call__(self, effect: str) -> None:
        """One effect, or the end."""
        self.count += 1
        self.names.append(effect)
        if self.dead:
            raise Crash(effect)


class MortalStore:
    """A store whose process may die before a call or after it: then the write is there and nobody knows."""

    def __init__(self, inner: Any, effect: Mortal) -> None:
        self._inner = inner
        self._effect = effect

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            await self._effect(f"store.{name}")
            result = await method(*args, **kwargs)
            await self._effect(f"store.{name} done")
            return result

        return call


ENDS = {
    "plain": {TaskState.SUCCEEDED},
    "switch": {TaskState.SUCCEEDED, TaskState.FAILED},  # a crash may cost the second Attempt before it was sent
    "lost answer": {TaskState.SUCCEEDED},
    "cancel": {TaskState.CANCELLED, TaskState.SUCCEEDED},
}


def rehearse(scenario: str, effect: Mortal) -> Stage:
    """A process of that scenario which lives under `effect`."""
    play = stage(offers=catalog(supply("a/clip"), supply("b/clip")))
    for peer in (play.health, play.capacity, play.quotes, play.provider):
        peer.effect = effect
    if scenario == "switch":
        play.provider.answers["a/clip"] = [Fault.of("provider_error", "500")]
    if scenario == "lost answer":
        play.provider.answers["a/clip"] = [None]
    if scenario == "cancel":
        play.provider.polls = [Polled("running")] * 3
    return play


async def live(play: Stage, mortal: Stage, scenario: str) -> None:
    """The life of the Task in the mortal process, until that dies or the Task has ended."""
    for second in range(30):
        for queue in (mortal.dispatch, mortal.follow):
            await queue.scan()
            await queue.settled()
        if scenario == "cancel" and second == 3:
            await cancel_task(mortal.desk, "t1", "")
        if (await play.task()).state in (TaskState.SUCCEEDED, TaskState.FAILED, TaskState.CANCELLED):
            return
        play.clock.advance(0.5)


async def crash_at(scenario: str, at: int) -> tuple[Stage, Mortal]:
    """Kill the process at its n-th effect, then let another one take over and bring the Task to its end."""
    effect = Mortal(at)
    play = rehearse(scenario, effect)
    await play.submit()
    mortal = stage(like=play, store=MortalStore(play.desk.store, effect), worker="mortal")
    with contextlib.suppress(Crash):
        await live(play, mortal, scenario)
    for queue in (mortal.dispatch, mortal.follow):
        await _buried(queue)
    for peer in (play.health, play.capacity, play.quotes, play.provider):
        peer.effect = _nothing
    heir = stage(like=play, worker="heir")
    if scenario == "cancel":
        await cancel_task(heir.desk, "t1", "")
    await heir.pass_time(120)
    return heir, effect


@pytest.mark.parametrize("scenario", list(ENDS))
async def test_a_crash_at_any_effect_sends_nothing_twice_and_leaves_nothing_behind(scenario: str):
    """ATT-5, ATT-7: killed at every effect of a Task's life in turn: one submission a token, an honest end, no slot
    kept, no live Attempt, every outcome told."""
    at = 1
    while True:
        play, effect = await crash_at(scenario, at)
        place = f"{scenario}, effect {at} ({effect.names[-1] if effect.names else ''})"
        task = await play.task()
        assert task.state in ENDS[scenario], (place, task.failure, task.waiting_reason)
        assert task.live is None, place
        for attempt in task.attempts:
            assert play.provider.sends(attempt.client_token) <= 1, place
            assert not attempt.report_pending, place
        known = {attempt.client_token for attempt in task.attempts}
        assert set(play.provider.ledger) <= known, place
        assert play.capacity.live() == {}, place
        if scenario in ("plain", "lost answer"):
            paid = [a for a in task.attempts if a.client_token in play.provider.ledger]
            assert len(paid) == 1, place
        if not effect.dead:
            break
        at += 1
    assert at > 15


async def _nothing(_: str) -> None:
    """No effect is watched any more."""


async def _buried(queue: Any) -> None:
    """Every step of a dead process comes to nothing."""
    steps = [held.step for held in queue._running.values()]
    await asyncio.gather(*steps, return_exceptions=True)
