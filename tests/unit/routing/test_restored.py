"""A database that was put back to a backup: what may have been sent since is looked up, and never paid twice."""

import asyncio
import copy
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from libs.faults.fault import Fault
from services.routing.app.cancel_task import cancel_task
from services.routing.app.resolve_attempt import Resolution, resolve_attempt
from services.routing.app.restores import AGAIN_S, KeepLife, declare_over, declare_restored
from services.routing.app.submit_task import Submission, submit_task
from services.routing.domain.attempts import fault
from services.routing.domain.doubt import PATIENCE, SLACK, Life, was_put_back
from services.routing.domain.request import Request
from services.routing.domain.task import AttemptState, TaskState
from services.routing.ports import Polled
from services.routing.ports.alerts import AlertQuery
from services.routing.store.life_file import LifeFile, NoMark
from services.routing.store.tasks_memory import MemoryTasks
from tests.support.worlds import START
from tests.unit.routing.dispatch_fakes import Stage, stage
from tests.unit.routing.dispatch_offers import MODEL, catalog, supply
from tests.unit.routing.test_dispatch_adversity import turns

BROKEN = Fault.of("provider_error", "the provider answered 500")
PATIENT_S = PATIENCE.total_seconds() + 40
"""Longer than records that cannot tell are asked in the queue: the time of a submission is a part of it."""
DOWN_S = 30.0
"""How long putting it back takes."""


async def backed_up(**more: Any) -> tuple[Stage, Any]:
    """A life with one Task in its queue, and its backup of that moment; its jobs run on for a while."""
    play = stage(**more)
    play.provider.polls = [Polled("running")] * 9
    await play.submit()
    return play, copy.deepcopy(play.desk.store)


async def put_back(play: Stage, backup: Any, down_s: float = DOWN_S) -> Stage:
    """The next life, over the backup of the start, told what it is before anything is sent."""
    play.clock.advance(down_s)
    again = stage(like=play, store=backup, worker="worker-2")
    assert await declare_restored(again.desk, START) == 1
    return again


def sent(play: Stage) -> int:
    """Submissions of all lives."""
    return sum(name == "submit" for name, _ in play.provider.calls)


async def test_what_was_sent_after_the_backup_is_followed_and_not_sent_again() -> None:
    """ATT-5, ATT-6: the job is found by the token that follows from the Task: one submission, one attempt."""
    play, backup = await backed_up()
    await play.work()
    assert sent(play) == 1
    again = await put_back(play, backup)
    await again.work()
    task = await again.task()
    assert task.live is not None
    assert (task.state, task.live.provider_task_id) == (TaskState.RUNNING, f"job-{task.live.client_token}")
    await again.pass_time(60)
    task = await again.task()
    assert (task.state, [item.counted for item in task.attempts], sent(play)) == (TaskState.SUCCEEDED, [True], 1)
    assert task.spent == task.attempts[0].quote


async def test_what_was_not_sent_is_sent_once_every_supply_has_said_no() -> None:
    """ATT-6: each bound Supply is asked for every token of its permitted Attempts; then it goes on like any other."""
    play, backup = await backed_up()
    again = await put_back(play, backup)
    await again.work()
    assert [name for name, _ in play.provider.calls] == ["look_up"] * 4 + ["submit"]
    await again.pass_time(60)
    task = await again.task()
    assert (task.state, len(task.attempts), sent(play)) == (TaskState.SUCCEEDED, 1, 1)


async def test_the_attempt_that_goes_on_is_found_and_not_the_one_that_had_failed() -> None:
    """ATT-1, ATT-6: the other life had switched to a second Supply; no number is used again after it."""
    play, backup = await backed_up()
    play.provider.answers = {"a/clip": [BROKEN]}
    await play.work()
    assert sent(play) == 2
    again = await put_back(play, backup)
    again.provider.polls = [Polled("failed")]
    await again.pass_time(60)
    task = await again.task()
    assert task.attempts[0].supply == "b/clip"
    assert len({item.client_token for item in task.attempts}) == len(task.attempts)
    assert all(play.provider.sends(item.client_token) == 1 for item in task.attempts)


async def test_of_two_jobs_the_newest_goes_on() -> None:
    """ATT-1, ATT-6: the first had been taken and had failed, and its Supply still lists it; the second is at work."""
    play, backup = await backed_up()
    failure = fault("provider_error", "it broke", "supply", "supply", True)
    play.provider.polls = [Polled("failed", failure=failure), *[Polled("running")] * 5]
    await play.pass_time(6)
    assert sent(play) == 2
    again = await put_back(play, backup)
    await again.pass_time(60)
    task = await again.task()
    assert (task.state, sent(play)) == (TaskState.SUCCEEDED, 2)
    assert [item.supply for item in task.attempts] == ["b/clip"]


async def test_what_nobody_can_tell_waits_for_a_person() -> None:
    """ATT-6, COST-12: a Supply without records: nothing is sent; the doubt ends as submission_unresolved."""
    play, backup = await backed_up()
    play.provider.silent = {"b/clip"}
    again = await put_back(play, backup)
    await again.work()
    assert (await again.task()).waiting_reason.startswith("uncertain: the database was put back, b/clip may have it")
    await again.pass_time(PATIENCE.total_seconds() + 120, 5)
    doubt = (await again.task()).live
    assert doubt is not None
    assert (doubt.state, doubt.supply, doubt.counted) == (AttemptState.SUBMISSION_UNCERTAIN, "b/clip", False)
    await again.pass_time(3600, 60)
    task = await again.task()
    assert task.failure is not None
    assert (task.failure.code, sent(play)) == ("submission_unresolved", 0)
    told = {alert.kind for alert in (await again.desk.store.alerts(AlertQuery()))[0]}
    assert {"submission_unresolved", "cost_anomaly"} <= told


async def test_a_persons_word_ends_the_doubt() -> None:
    """ATT-6: `not_accepted` and every other Supply knows nothing of it: it is sent, with all its Attempts left;
    `accepted` and the job is followed."""
    for verdict, job, sends in (("not_accepted", "", 1), ("accepted", "job-7", 0)):
        play, backup = await backed_up()
        play.provider.silent = {"a/clip"}
        again = await put_back(play, backup)
        await again.pass_time(PATIENT_S, 5)
        doubt = (await again.task()).live
        assert doubt is not None
        await resolve_attempt(again.desk, Resolution(doubt.id, verdict, job))
        await again.pass_time(90)
        task = await again.task()
        assert (task.state, sent(play)) == (TaskState.SUCCEEDED, sends)
        assert sum(item.counted for item in task.attempts) == 1


async def test_a_late_answer_of_the_records_ends_the_doubt() -> None:
    """ATT-6: an uncertain Attempt of that sort asks records only, and follows what they show in the end."""
    play, backup = await backed_up()
    await play.work()
    play.provider.silent = {"a/clip", "b/clip"}
    again = await put_back(play, backup)
    await again.pass_time(PATIENT_S, 5)
    assert (await again.task()).live is not None
    play.provider.silent = set()
    await again.pass_time(90)
    assert ((await again.task()).state, sent(play)) == (TaskState.SUCCEEDED, 1)
    assert "reconcile" not in {name for name, _ in play.provider.calls}


async def test_its_time_for_attempts_may_be_over_by_then() -> None:
    """ATT-3, ATT-6: looked up before it ends: what a provider has is delivered, the rest is not begun any more."""
    for was_sent, state in ((True, TaskState.SUCCEEDED), (False, TaskState.FAILED)):
        play, backup = await backed_up()
        if was_sent:
            await play.work()
        again = await put_back(play, backup, 7200)
        await again.pass_time(60)
        assert ((await again.task()).state, sent(play)) == (state, int(was_sent))


async def test_a_cancel_finds_what_was_sent() -> None:
    """ATT-8: it ends only once it is known that nobody has it; what a provider has is asked to stop."""
    play, backup = await backed_up()
    await play.work()
    again = await put_back(play, backup)
    await cancel_task(again.desk, "t1", "not wanted any more")
    await again.pass_time(10)
    assert (await again.task()).state is TaskState.CANCELLED
    assert [name for name, _ in play.provider.calls].count("cancel") == 1


async def test_what_was_decided_before_the_word_is_not_sent_after_it() -> None:
    """ATT-5, ATT-7: a worker that is between its decision and its intent is fenced."""
    words = []

    async def speaks(where: str) -> None:
        if where == "capacity.reserved" and not words:
            words.append(await declare_restored(play.desk, START))

    play, _ = await backed_up(effect=speaks)
    await play.work()
    assert words == [1]
    assert [name for name, _ in play.provider.calls] == ["look_up"] * 4 + ["submit"]
    assert len(play.capacity.live()) == 1


async def test_work_that_came_to_be_before_is_looked_up_whenever_it_is_handed_over() -> None:
    """ATT-6, RUN-6: the Task of an older Run may have been sent in the other life; that of a newer one may not."""
    play, backup = await backed_up()
    again = await put_back(play, backup)
    now = again.clock.now()
    asked = Request("t", MODEL, {"prompt": "a boat", "duration_s": 5})
    older = await submit_task(again.desk, Submission("t2", asked, "run-1", origin_at=now - timedelta(seconds=60)))
    newer = await submit_task(again.desk, Submission("t3", asked, "run-2", origin_at=now + timedelta(seconds=1)))
    plain = await submit_task(again.desk, Submission("t4", asked))
    assert older.doubt is not None
    assert (older.doubt.since, newer.doubt, plain.doubt) == (START, None, None)


async def test_a_person_who_has_compared_both_books_ends_it() -> None:
    """ATT-6: nothing is looked up any more; what is not known is refused, and so is a moment that has not come."""
    play, backup = await backed_up()
    play.provider.silent = {"a/clip", "b/clip"}
    again = await put_back(play, backup)
    await again.work()
    with pytest.raises(Fault, match="no restore of a backup of"):
        await declare_over(again.desk, START + timedelta(seconds=1))
    assert await declare_over(again.desk, START) == 1
    await again.pass_time(60)
    assert ((await again.task()).state, sent(play)) == (TaskState.SUCCEEDED, 1)
    with pytest.raises(Fault, match="is in the future"):
        await declare_restored(again.desk, again.clock.now() + 2 * SLACK)


async def test_what_came_after_the_backup_by_the_clock_is_in_no_doubt() -> None:
    """ATT-6: an operator's word to a stack that is at work again leaves its newer Tasks alone."""
    play = stage(offers=catalog(supply("a/clip", slots=1)))
    await play.submit("old")
    play.clock.advance(SLACK.total_seconds() + 1)
    await play.submit("new")
    assert await declare_restored(play.desk, START) == 1
    assert await declare_restored(play.desk, START) == 0
    assert [(await play.task(name)).doubt is None for name in ("old", "new")] == [False, True]


async def test_a_token_follows_from_its_task() -> None:
    """ATT-5, ATT-6: two lives give the same Attempt the same token; two callers who chose one id do not; an Attempt of
    which no byte left leaves its token to the next."""
    play, backup = await backed_up()
    await play.work()
    other = stage(like=play, store=backup)
    busy = Fault.of("overloaded", "too many at once")
    other.provider.answers = {"a/clip": [busy], "b/clip": [busy]}
    await other.pass_time(5)
    tokens = [item.client_token for item in (await other.task()).attempts]
    assert len(tokens) > 1
    assert set(tokens) == {(await play.task()).attempts[0].client_token}
    elsewhere = stage()
    elsewhere.clock.advance(1)
    await elsewhere.submit()
    await elsewhere.work()
    assert (await elsewhere.task()).attempts[0].client_token not in tokens


# --- How it is noticed ------------------------------------------------------------------------------------------------


async def test_a_life_that_remembers_less_than_its_mark_was_put_back(tmp_path: Path) -> None:
    """ATT-5: noticed at the start, before anything is sent, whatever the operator says; once."""
    file = LifeFile(tmp_path / "data" / "life.json")
    play = stage()
    await KeepLife(play.desk, file).begin()
    await play.submit()
    backup = copy.deepcopy(play.desk.store)
    play.clock.advance(60)
    await KeepLife(play.desk, file).begin()
    assert (await play.task()).doubt is None
    again = stage(like=play, store=backup)
    for _ in range(2):
        await KeepLife(again.desk, file).begin()
    doubt = (await again.task()).doubt
    assert doubt is not None
    assert (doubt.since, doubt.until) == (START, again.clock.now())
    assert [item.backup_at for item in again.desk.restores] == [START]


class Away(MemoryTasks):
    """A store that does not answer the first questions about its life."""

    silent = 2

    async def life(self, database: str, now: datetime) -> Life:
        """See the port."""
        if self.silent:
            self.silent -= 1
            raise Fault.of("governance_backend_down", "the database does not answer")
        return await super().life(database, now)


async def test_a_start_waits_for_the_database_instead_of_sending_blindly() -> None:
    """ATT-5: nor does it fail: whoever begins while the database is away looks as soon as it answers."""
    play = stage(store=Away())
    beginning = asyncio.ensure_future(KeepLife(play.desk, NoMark(), START).begin())
    for _ in range(Away.silent):
        await turns()
        assert not beginning.done()
        play.clock.advance(AGAIN_S)
    await beginning
    assert [item.backup_at for item in play.desk.restores] == [START]


async def test_other_databases_and_other_folders_are_no_restore(tmp_path: Path) -> None:
    """ATT-5: a new database beside an old mark, a copy elsewhere, and a mark that nobody can read."""
    file = LifeFile(tmp_path / "life.json")
    old = stage()
    for _ in range(3):
        await KeepLife(old.desk, file).begin()
    for mark in (file, LifeFile(tmp_path / "elsewhere.json"), NoMark()):
        new = stage(worker=str(mark), like=None if mark is file else old, store=None)
        new.desk.world.ids.ulid()  # its ids are its own
        new.clock.advance(1)
        await KeepLife(new.desk, mark).begin()
        assert new.desk.restores == []
    (tmp_path / "life.json").write_text("{}")
    await KeepLife(old.desk, file).begin()
    assert old.desk.restores == []


async def test_a_database_that_goes_back_under_a_living_process_is_noticed() -> None:
    """ATT-5: by the next beat; another process that beats the same database is none."""
    play = stage()
    first, second = KeepLife(play.desk, NoMark()), KeepLife(play.desk, NoMark())
    await first.begin()
    await second.begin()
    await play.submit()
    kept = copy.deepcopy(vars(play.desk.store))
    for keeper in (first, second, first):
        await keeper.tick()
    assert play.desk.restores == []
    vars(play.desk.store).update(kept)
    await first.tick()
    await second.tick()
    assert len(play.desk.restores) == 1
    assert (await play.task()).doubt is not None


async def test_an_operators_word_at_the_start_comes_before_the_first_look() -> None:
    """ATT-5: POINTSMAN_RESTORED_BACKUP_AT, and again at every later start: it is one restore."""
    play, _ = await backed_up()
    play.clock.advance(DOWN_S)
    for _ in range(2):
        await KeepLife(play.desk, NoMark(), START).begin()
    assert [item.backup_at for item in play.desk.restores] == [START]
    assert (await play.task()).doubt is not None


def test_only_more_beats_of_the_same_database_say_so() -> None:
    """ATT-5: equal is what a process that ended well finds."""
    life = Life("one", 7, START)
    assert was_put_back(life, replace(life, beat=8))
    assert not any(was_put_back(life, mark) for mark in (None, life, replace(life, beat=6), Life("two", 8, START)))
