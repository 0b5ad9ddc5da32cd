"""What gathers the callers of a store."""

import asyncio
from collections.abc import Sequence

import pytest

from libs.faults.fault import Fault
from libs.store.gathering import Gathering
from libs.telemetry.spans import carried, here


class Work:
    """Answers with the ask in capitals, when it is told to; remembers the groups."""

    def __init__(self) -> None:
        self.groups: list[list[str]] = []
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.error: Exception | None = None

    async def __call__(self, asks: Sequence[str]) -> Sequence[str | Exception]:
        """One group; `bad` spoils a whole group, `fault` only itself."""
        self.groups.append(list(asks))
        self.begun.set()
        await self.go_on.wait()
        if self.error is not None:
            raise self.error
        if "bad" in asks:
            raise ValueError("bad")
        return [Fault.of("not_found", "no") if ask == "fault" else ask.upper() for ask in asks]


def gathering(work: Work, most: int = 256) -> Gathering[str, str]:
    """Asks are about what their first letter says."""
    return Gathering(work, lambda ask: ask[0], most)


async def test_who_waits_in_one_turn_travels_together() -> None:
    """PRF-3: callers of one turn are one group in their order; callers of a group in flight are the next."""
    work = Work()
    group = gathering(work)
    work.go_on.clear()
    first = [asyncio.create_task(group.ask(name)) for name in ("a", "b")]
    await work.begun.wait()
    later = [asyncio.create_task(group.ask(name)) for name in ("c", "d", "e")]
    await asyncio.sleep(0)
    work.go_on.set()
    assert await asyncio.gather(*first, *later) == ["A", "B", "C", "D", "E"]
    assert work.groups == [["a", "b"], ["c", "d", "e"]]


async def test_a_group_is_asked_about_in_the_trace_of_its_first_member() -> None:
    """OPS-5: the task that carries the groups is somebody's; a later group is not told in that one's trace."""
    seen: list[str] = []

    class Traced(Work):
        async def __call__(self, asks: Sequence[str]) -> Sequence[str | Exception]:
            """Remembers in which trace it is done."""
            seen.append(here())
            return await super().__call__(asks)

    work = Traced()
    group = gathering(work)

    async def ask(name: str, traceparent: str) -> str:
        with carried(traceparent):
            return await group.ask(name)

    work.go_on.clear()
    first = asyncio.create_task(ask("a", "00-one"))
    await work.begun.wait()
    later = [asyncio.create_task(ask(name, trace)) for name, trace in (("b", "00-two"), ("c", "00-three"))]
    await asyncio.sleep(0)
    work.go_on.set()
    await asyncio.gather(first, *later)
    assert await ask("d", "") == "D"
    assert seen == ["00-one", "00-two", ""]


async def test_two_about_one_thing_never_travel_together() -> None:
    """CAP-2: a repetition of an id waits for the group after, so that each is decided as if alone."""
    work = Work()
    group = gathering(work)
    assert await asyncio.gather(*map(group.ask, ("a1", "a2", "b", "a3"))) == ["A1", "A2", "B", "A3"]
    assert work.groups == [["a1", "b"], ["a2"], ["a3"]]


async def test_groups_have_a_size() -> None:
    """PRF-3: no group grows beyond its bound."""
    work = Work()
    assert await asyncio.gather(*map(gathering(work, 2).ask, "abcde")) == list("ABCDE")
    assert work.groups == [["a", "b"], ["c", "d"], ["e"]]


async def test_one_bad_member_spoils_no_other() -> None:
    """CAP-1: an error of one member is its own; the others get their answers."""
    work = Work()
    group = gathering(work)
    answers = await asyncio.gather(*map(group.ask, ("a", "bad", "c", "fault")), return_exceptions=True)
    assert [answers[0], answers[2]] == ["A", "C"]
    assert isinstance(answers[1], ValueError)
    assert isinstance(answers[3], Fault)
    assert work.groups == [["a", "bad", "c", "fault"], ["a"], ["bad"], ["c"], ["fault"]]


async def test_what_cannot_be_taken_is_one_members_own() -> None:
    """CAP-1: a member whose text the store refuses is told so, and those beside it are answered."""

    async def work(asks: Sequence[str]) -> list[str]:
        if "a\0b" in asks:
            raise Fault.of("validation_failed", "a text holds a NUL character")
        return list(asks)

    group: Gathering[str, str] = Gathering(work, lambda ask: ask)
    found = await asyncio.gather(*map(group.ask, ("a", "a\0b", "c")), return_exceptions=True)
    assert (found[0], found[2]) == ("a", "c")
    assert isinstance(found[1], Fault)
    assert found[1].code == "validation_failed"


async def test_a_store_that_is_away_refuses_the_whole_group() -> None:
    """CAP-12: a Fault of the store is everybody's, asked once."""
    work = Work()
    work.error = Fault.of("governance_backend_down")
    answers = await asyncio.gather(*map(gathering(work).ask, "ab"), return_exceptions=True)
    assert all(isinstance(answer, Fault) for answer in answers)
    assert work.groups == [["a", "b"]]


async def test_a_caller_that_left_is_left_out() -> None:
    """CAP-8: who is cancelled before his group sets out asks for nothing; who goes later changes nothing for others."""
    work = Work()
    group = gathering(work)
    work.go_on.clear()
    tasks = [asyncio.create_task(group.ask(name)) for name in ("a", "b")]
    await work.begun.wait()
    tasks += [asyncio.create_task(group.ask(name)) for name in ("c", "d")]
    await asyncio.sleep(0)
    tasks[0].cancel()
    tasks[2].cancel()
    work.go_on.set()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [answers[1], answers[3]] == ["B", "D"]
    assert isinstance(answers[0], asyncio.CancelledError)
    assert work.groups == [["a", "b"], ["d"]]
    await group.close()


async def test_closing_waits_for_what_was_asked() -> None:
    """OPS-4: a store is closed under nobody."""
    work = Work()
    group = gathering(work)
    asked = asyncio.create_task(group.ask("a"))
    await asyncio.sleep(0)
    await group.close()
    assert await asked == "A"
    with pytest.raises(ValueError, match="bad"):
        await group.ask("bad")


async def test_what_is_shared_is_the_callers_to_say() -> None:
    """A refusal of one member's own is answered to it alone, a Fault too; the others have their answers."""
    work = Work()

    async def picky(asks: Sequence[str]) -> Sequence[str | Exception]:
        if "bad" in asks:
            raise Fault.of("conflict", "one of them is in the way")
        return await work(asks)

    group = Gathering(picky, lambda ask: ask[0], shared=lambda error: False)
    answers = await asyncio.gather(*map(group.ask, ("a", "bad", "c")), return_exceptions=True)
    assert [getattr(answer, "code", answer) for answer in answers] == ["A", "conflict", "C"]


async def test_a_cancellation_from_inside_the_work_strands_nobody() -> None:
    """SYN-7: what was cancelled below ends its own group; who came meanwhile is answered without another ask."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def work(asks: Sequence[str]) -> Sequence[str | Exception]:
        if "a" in asks:
            begun.set()
            await go_on.wait()
            raise asyncio.CancelledError
        return [ask.upper() for ask in asks]

    group: Gathering[str, str] = Gathering(work, lambda ask: ask)
    first = asyncio.create_task(group.ask("a"))
    await begun.wait()
    second = asyncio.create_task(group.ask("b"))
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.wait((first, second), timeout=5)
    assert first.cancelled()
    assert second.done()
    assert second.result() == "B"


async def test_with_the_end_of_its_group_nobody_waits_for_ever() -> None:
    """OPS-4: when the loop ends the group in flight, those behind it are let go too."""
    work = Work()
    group = gathering(work)
    work.go_on.clear()
    first = asyncio.create_task(group.ask("a"))
    await work.begun.wait()
    second = asyncio.create_task(group.ask("b"))
    await asyncio.sleep(0)
    (running,) = (task for task in asyncio.all_tasks() if task.get_name() == "group")
    running.cancel()
    await asyncio.wait((first, second), timeout=5)
    assert first.cancelled()
    assert second.cancelled()
