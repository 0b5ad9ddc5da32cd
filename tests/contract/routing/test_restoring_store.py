"""Every store of Tasks keeps the contract of lives and restores."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from libs.faults.fault import Fault
from services.routing.domain import transitions
from services.routing.domain.doubt import Restore
from services.routing.domain.task import Doubt
from services.routing.ports import Lane
from tests.contract.routing.tasks_stores import KINDS, at, attempt, opened, queued, to_submitting, write

UNTIL = at(15)


@pytest.fixture(params=KINDS)
def store_url(request: pytest.FixtureRequest) -> str:
    """Where the store under test lies."""
    return request.getfixturevalue("pg_url") if request.param == "postgres" else ""


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[Any]:
    """The store."""
    async with opened(store_url) as made:
        yield made


async def test_a_life_begins_once_and_only_rises(store: Any) -> None:
    """ATT-5: one name for ever; each beat is above the last and above what is known elsewhere."""
    first = await store.life("one", at(0))
    assert (first.database, first.beat, await store.life("two", at(1))) == ("one", 0, first)
    beats = [(await store.beat(least, at(2))).beat for least in (0, 0, 9, 3)]
    assert beats == [1, 2, 10, 11]
    assert (await store.life("two", at(3))).at == at(2)


async def test_a_pulse_is_counted_once(store: Any) -> None:
    """ATT-6, VER-6: there is none before the life begins; of those who saw it stand still the first counts, the others
    learn; a restore remembers when it was noticed."""
    assert (await store.pulse(), await store.pulse(0)) == (0, 0)
    await store.life("one", at(0))
    assert [await store.pulse(seen) for seen in (0, 0, None, 1, 7, 2)] == [1, 1, 1, 2, 2, 3]
    await store.put_back(at(-5), at(6), at(8))
    assert await store.pulse(3) == 4
    assert [restore.pulse for restore in await store.restores()] == [3]


async def test_what_is_open_comes_into_doubt_once(store: Any) -> None:
    """ATT-5, ATT-7: who has claimed a queued Task is fenced, who follows one is not; what has ended, and what is newer,
    stays as it is; the same word again changes nothing."""
    for name, created in (("waits", 0), ("claimed", 1), ("sent", 2), ("ended", 3), ("newer", 9)):
        await store.add(queued(name, created))
    claimed = await store.claim_one("claimed", "w1", at(3), UNTIL)
    sent = await store.claim_one("sent", "w1", at(3), UNTIL)
    sent = await store.save(write(sent, to_submitting(sent), until=UNTIL))
    ended = await store.claim_one("ended", "w1", at(3), UNTIL)
    await store.save(write(ended, transitions.cancelled(ended, at(4))))
    assert await store.put_back(at(-5), at(6), at(8)) == 3
    assert await store.put_back(at(-5), at(7), at(8)) == 0
    told = {name: (await store.get(name)).doubt for name in ("waits", "claimed", "sent", "ended", "newer")}
    doubt = Doubt(at(-5), at(6))
    assert told == {"waits": doubt, "claimed": doubt, "sent": doubt, "ended": None, "newer": None}
    with pytest.raises(Fault, match="newer owner"):
        await store.save(write(claimed, to_submitting(claimed)))
    taken = transitions.accepted(sent, sent.attempts[0], "job-1", at(7), at(30))
    assert (await store.save(write(sent, taken))).live.provider_task_id == "job-1"
    assert (await store.get("sent")).doubt == doubt
    due = await store.claim(Lane.DISPATCH, "w2", 9, at(10), UNTIL)
    assert sorted(task.id for task in due) == ["claimed", "newer", "waits"]


async def test_a_doubt_ends_by_the_write_that_says_so(store: Any) -> None:
    """ATT-6: and is kept by every other; two restores are one doubt from the older backup on."""
    await store.add(queued("t1"))
    await store.put_back(at(-5), at(2), at(2))
    await store.put_back(at(-9), at(3), at(3))
    task = await store.claim_one("t1", "w1", at(4), UNTIL)
    assert task.doubt == Doubt(at(-9), at(3))
    await store.save(write(task, transitions.waiting(task, "uncertain: nobody knows yet", at(5))))
    task = await store.claim_one("t1", "w1", at(6), UNTIL)
    assert task.doubt is not None
    await store.save(write(task, transitions.undoubted(task, at(7))))
    assert (await store.get("t1")).doubt is None


async def test_an_attempt_in_doubt_is_kept_whole(store: Any) -> None:
    """ATT-6: with its mark, and under the token by which it was found at last."""
    await store.add(replace(queued("t1"), doubt=Doubt(at(-5), at(0))))
    task = await store.claim_one("t1", "w1", at(1), UNTIL)
    assert task.doubt == Doubt(at(-5), at(0))
    tried = replace(attempt(task), doubted=True, counted=False, lease_id="")
    saved = await store.save(write(task, transitions.submitting(task, tried, at(-5), at(900)), until=UNTIL))
    found = replace(saved.attempts[0], client_token="the second")
    await store.save(write(saved, transitions.accepted(saved, found, "job-2", at(3), at(4))))
    kept = (await store.get("t1")).attempts[0]
    assert (kept.doubted, kept.counted, kept.client_token, kept.lease_id) == (True, True, "the second", "")


async def test_restores_are_listed_and_may_be_over(store: Any) -> None:
    """ATT-6: one by its backup, or all; Tasks are free once none is left."""
    await store.add(queued("t1"))
    await store.put_back(at(-5), at(2), at(2))
    await store.put_back(at(-9), at(3), at(3))
    assert list(await store.restores()) == [Restore(at(-9), at(3)), Restore(at(-5), at(2))]
    assert await store.no_doubt(at(-9), at(4)) == 0
    assert (await store.get("t1")).doubt is not None
    assert await store.no_doubt(None, at(5)) == 1
    assert list(await store.restores()) == [Restore(at(-9), at(3), at(4)), Restore(at(-5), at(2), at(5))]
    assert (await store.get("t1")).doubt is None
