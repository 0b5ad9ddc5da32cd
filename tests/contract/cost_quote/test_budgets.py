"""Every store of budgets keeps the same contract."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from libs.faults.fault import Fault
from libs.store.upgrading import differences
from services.cost_quote.compose import SCHEMA
from services.cost_quote.domain.budgets import (
    NOTHING,
    ChangeAsk,
    EntryKind,
    Hold,
    HoldState,
    Moved,
    Refused,
    ReleaseAsk,
    SettleAsk,
)
from services.cost_quote.domain.ledger import sentence
from services.cost_quote.ports import Budgets
from services.cost_quote.store.tables import metadata
from tests.contract.cost_quote.ledgers import Bench, asked, cny, declaration, emptied, hold
from tests.support.worlds import START


async def tree(budgets: Budgets) -> None:
    """A project of 100.00, an episode of 20.00, a shot of 10.00."""
    await budgets.create(declaration("p", level="project", hard=cny(100)))
    await budgets.create(declaration("e", "p", level="episode", hard=cny(20)))
    await budgets.create(declaration("s", "e", level="shot", hard=cny(10)))


async def figures(budgets: Budgets, *names: str) -> list[tuple[float, float]]:
    """(spent, held) of each, in yuan."""
    found = [await budgets.get(name) for name in names]
    return [(budget.spent.cost / 1e9, budget.held.cost / 1e9) for budget in found if budget]


async def fault_of(call: Awaitable[Any]) -> Fault:
    """The fault in which it ends."""
    with pytest.raises(Fault) as caught:
        await call
    return caught.value


async def taken(budgets: Budgets, *args: Any, **more: Any) -> Moved:
    """A Hold that is taken."""
    outcome = await budgets.hold(hold(*args, **more))
    assert isinstance(outcome, Moved)
    return outcome


async def refused(budgets: Budgets, *args: Any, **more: Any) -> tuple[str, str]:
    """(budget, dimension) by which a Hold is refused."""
    outcome = await budgets.hold(hold(*args, **more))
    assert isinstance(outcome, Refused)
    return outcome.refusal.budget.id, outcome.refusal.dimension


async def test_a_hold_is_taken_at_every_level_or_at_none(budgets: Budgets) -> None:
    """COST-9: what fits below and not above is held nowhere, and the refusal names the level and its figures."""
    await tree(budgets)
    await taken(budgets, "1", "s", 8)
    await budgets.create(declaration("t", "e", level="shot", hard=cny(50)))
    outcome = await budgets.hold(hold("2", "t", 12.5))
    assert isinstance(outcome, Refused)
    assert sentence(outcome.refusal) == (
        "episode budget 'e' is limited to 20.00 CNY: 0.00 CNY is spent, 8.00 CNY is held, 12.50 CNY more is asked"
    )
    assert await figures(budgets, "p", "e", "s", "t") == [(0, 8), (0, 8), (0, 8), (0, 0)]
    refusing = await budgets.get("e")
    assert refusing is not None
    assert (refusing.refused_at, refusing.revision) == (START, 1)
    await taken(budgets, "2", "t", 12)
    assert await figures(budgets, "p", "e", "s", "t") == [(0, 20), (0, 20), (0, 8), (0, 12)]


async def test_settling_books_the_real_cost_and_frees_the_rest(budgets: Budgets) -> None:
    """COST-9: of 8.00 held 3.25 are spent; what is left may be held again."""
    await tree(budgets)
    await taken(budgets, "1", "s", 8, attempts=2)
    moved = await budgets.settle(SettleAsk("1", asked(3.25, attempts=1)))
    assert (moved.hold.state, moved.hold.settled, moved.hold.beyond) == (HoldState.SETTLED, cny(3.25, 1), NOTHING)
    assert await figures(budgets, "p", "e", "s") == [(3.25, 0)] * 3
    assert await refused(budgets, "2", "s", 6.76) == ("s", "cost")
    await taken(budgets, "2", "s", 6.75)


async def test_the_same_hold_again_is_the_same_hold(budgets: Budgets) -> None:
    """COST-9: a repeat takes nothing more, whatever rate is in force by then; another request under its id is refused,
    and so is the id of a Hold that was released."""
    await tree(budgets)
    first = await taken(budgets, "1", "s", 8)
    again = await taken(budgets, "1", "s", 8, USD=1)
    assert again.hold == first.hold
    assert (await fault_of(budgets.hold(hold("1", "s", 7)))).code == "already_exists"
    assert (await fault_of(budgets.hold(hold("1", "e", 8)))).code == "already_exists"
    assert await figures(budgets, "s") == [(0, 8)]
    await budgets.settle(SettleAsk("1", asked(5)))
    assert (await taken(budgets, "1", "s", 8)).hold.state is HoldState.SETTLED
    await taken(budgets, "2", "s", 1)
    await budgets.release(ReleaseAsk("2"))
    assert (await fault_of(budgets.hold(hold("2", "s", 1)))).code == "conflict"
    assert await figures(budgets, "s") == [(5, 0)]


async def test_twice_settled_is_once_and_other_amounts_are_a_correction_or_a_conflict(budgets: Budgets) -> None:
    """COST-11, COST-12: a settlement that comes twice books once; a charge that is found later replaces it by an entry
    of its own, also where the Hold had been given back."""
    await tree(budgets)
    await taken(budgets, "1", "s", 8)
    for _ in range(2):
        await budgets.settle(SettleAsk("1", asked(5)))
    assert (await fault_of(budgets.settle(SettleAsk("1", asked(6))))).code == "conflict"
    for _ in range(2):
        await budgets.settle(SettleAsk("1", asked(6), "the invoice", correct=True))
    assert await figures(budgets, "p", "s") == [(6, 0)] * 2
    await taken(budgets, "2", "s", 1)
    await budgets.release(ReleaseAsk("2"))
    assert (await fault_of(budgets.settle(SettleAsk("2", asked(1))))).code == "conflict"
    await budgets.settle(SettleAsk("2", asked(1), "it was charged after all", correct=True))
    assert await figures(budgets, "p", "s") == [(7, 0)] * 2
    kinds = [entry.kind for entry in await budgets.entries("s", 0, 100)]
    assert kinds == [
        EntryKind.HOLD,
        EntryKind.SETTLE,
        EntryKind.CORRECTION,
        EntryKind.HOLD,
        EntryKind.RELEASE,
        EntryKind.CORRECTION,
    ]
    assert (await fault_of(budgets.settle(SettleAsk("9", asked(1))))).code == "not_found"


async def test_more_than_was_held_is_booked_and_told(budgets: Budgets) -> None:
    """COST-11, COST-12: the provider charged it, so it is spent, also beyond a hard limit; no Hold follows."""
    await tree(budgets)
    await taken(budgets, "1", "s", 8)
    moved = await budgets.settle(SettleAsk("1", asked(11)))
    assert moved.hold.beyond == cny(3)
    assert await figures(budgets, "p", "e", "s") == [(11, 0)] * 3
    assert await refused(budgets, "2", "s", 0) == ("s", "cost")


async def test_a_release_gives_back_once(budgets: Budgets) -> None:
    """COST-9: given back twice is given back once; what was settled stays settled."""
    await tree(budgets)
    await taken(budgets, "1", "s", 8)
    states = [(await budgets.release(ReleaseAsk("1"))).state for _ in range(2)]
    assert states == [HoldState.RELEASED] * 2
    await taken(budgets, "2", "s", 8)
    await budgets.settle(SettleAsk("2", asked(8)))
    assert (await budgets.release(ReleaseAsk("2"))).state is HoldState.SETTLED
    assert await figures(budgets, "p", "e", "s") == [(8, 0)] * 3
    assert len(await budgets.entries("p", 0, 100)) == 4


async def test_a_hold_that_comes_after_its_release_takes_nothing(budgets: Budgets) -> None:
    """COST-9: a release overtakes the Hold that it is for; the late one is refused, so nothing stays held for ever."""
    await tree(budgets)
    stone = await budgets.release(ReleaseAsk("1"))
    assert (stone.budget_id, stone.state) == ("", HoldState.RELEASED)
    assert (await budgets.release(ReleaseAsk("1"))) == stone
    assert (await fault_of(budgets.hold(hold("1", "s", 8)))).code == "conflict"
    assert (await fault_of(budgets.settle(SettleAsk("1", asked(8), correct=True)))).code == "conflict"
    assert await figures(budgets, "s") == [(0, 0)]


async def test_attempts_minutes_and_the_deadline_are_limits_too(ground: Bench) -> None:
    """COST-10: each dimension refuses by itself, and no Hold is taken after the deadline."""
    budgets = ground.budgets
    until = START + timedelta(seconds=60)
    await budgets.create(declaration("b", hard=cny(0, 3, 30), deadline_at=until))
    await taken(budgets, "1", "b", 1000, attempts=2, review_minutes=10)
    assert await refused(budgets, "2", "b", attempts=2) == ("b", "attempts")
    assert await refused(budgets, "2", "b", attempts=1, review_minutes=21) == ("b", "review_minutes")
    await ground.advance(59)
    await taken(budgets, "2", "b", attempts=1, review_minutes=20)
    await ground.advance(1)
    assert await refused(budgets, "3", "b") == ("b", "deadline")
    await budgets.change(ChangeAsk("b", "Ann: one more day", deadline_at=until + timedelta(days=1)))
    await taken(budgets, "3", "b")


async def test_a_soft_limit_is_told_once(budgets: Budgets) -> None:
    """COST-10: by the Hold that reached it and its repeats, at each level once; later ones see where it stands."""
    await budgets.create(declaration("p", level="project", soft=cny(10)))
    await budgets.create(declaration("s", "p", level="shot", soft=cny(5), hard=cny(20)))
    assert (await taken(budgets, "1", "s", 4.99)).told == ()
    second = await taken(budgets, "2", "s", 0.01)
    assert (second.told, second.soft) == (("s",), ("s",))
    assert (await taken(budgets, "2", "s", 0.01)).told == ("s",)
    third = await taken(budgets, "3", "s", 1)
    assert (third.told, third.soft) == ((), ("s",))
    await budgets.release(ReleaseAsk("3"))
    moved = await budgets.settle(SettleAsk("1", asked(12)))
    assert (moved.told, moved.soft) == (("p",), ("p", "s"))
    assert (await budgets.settle(SettleAsk("1", asked(12)))).told == ("p",)
    outcome = await budgets.hold(hold("4", "s", 9))
    assert isinstance(outcome, Refused)
    assert outcome.soft == ("p", "s")


async def test_minutes_are_held_booked_and_freed_at_every_level(budgets: Budgets) -> None:
    """COST-10, COST-11: minutes of reviewers move like money: held and refused by the level that has no room, booked as
    what they took, freed where nobody looks; their soft limit is told once, and what was not held is booked too."""
    await budgets.create(declaration("p", level="project", hard=cny(0, 0, 30), soft=cny(0, 0, 20)))
    await budgets.create(declaration("s", "p", level="shot"))
    assert (await taken(budgets, "1", "s", review_minutes=10)).told == ()
    assert (await taken(budgets, "2", "s", review_minutes=10)).told == ("p",)
    third = await taken(budgets, "3", "s", review_minutes=10)
    assert (third.told, third.soft) == ((), ("p",))
    assert await refused(budgets, "4", "s", review_minutes=1) == ("p", "review_minutes")
    await budgets.release(ReleaseAsk("3"))
    await budgets.settle(SettleAsk("1", asked(review_minutes=3)))
    moved = await budgets.settle(SettleAsk("2", asked(review_minutes=25)))
    assert moved.hold.beyond == cny(0, 0, 15)
    for name in ("p", "s"):
        budget = await budgets.get(name)
        assert budget is not None
        assert (budget.spent.review_minutes, budget.held.review_minutes) == (28, 0)
    assert await refused(budgets, "5", "s", review_minutes=3) == ("p", "review_minutes")
    await taken(budgets, "5", "s", review_minutes=2)
    assert await budgets.mismatches() == []


async def test_nothing_is_read_anew_that_was_read_today(ground: Bench) -> None:
    """COST-11: a sound ledger is sound from wherever it is read, and one that was just proven is not read again."""
    await tree(ground.budgets)
    await taken(ground.budgets, "1", "s", 4)
    assert await ground.budgets.mismatches() == await ground.budgets.mismatches(whole=True) == []
    assert await ground.budgets.reread(timedelta(days=1)) is None
    await ground.advance(3 * 86400)
    for _ in range(4):
        assert not await ground.budgets.reread(timedelta(days=1))
    assert await ground.budgets.reread(timedelta(days=1)) is None


async def test_limits_are_changed_by_a_person_with_a_reason(budgets: Budgets) -> None:
    """COST-10: a raised limit has room again, tells its soft limit anew, and is an entry that says who and why; a
    repeat changes nothing again, and other limits under its key are a conflict."""
    await budgets.create(declaration("b", hard=cny(10), soft=cny(8)))
    assert (await taken(budgets, "1", "b", 10)).told == ("b",)
    assert await refused(budgets, "2", "b", 1) == ("b", "cost")
    change = ChangeAsk("b", "Ann: the storm shot needs more", hard=cny(20), soft=cny(15), request_id="r-1")
    for _ in range(2):
        budget = await budgets.change(change)
        assert (budget.hard, budget.soft, budget.soft_limit_at, budget.revision) == (cny(20), cny(15), None, 2)
    assert (await taken(budgets, "2", "b", 5)).told == ("b",)
    entry = (await budgets.entries("b", 1, 1))[0]
    assert (entry.kind, entry.reason, entry.limits and entry.limits.hard) == (EntryKind.LIMIT, change.reason, cny(20))
    other = ChangeAsk("b", "Ann", hard=cny(30), request_id="r-1")
    refused_again = await fault_of(budgets.change(other))
    assert (refused_again.code, "decide anew under another key" in refused_again.message) == ("conflict", True)


@pytest.mark.parametrize(
    "change, pointer",
    [
        (ChangeAsk("b", " ", hard=cny(20)), "/reason"),
        (ChangeAsk("b", "Ann", hard=cny(5)), "/hard/cost"),
        (ChangeAsk("b", "Ann", hard=cny(-1)), "/hard/cost"),
        (ChangeAsk("b", "Ann", soft=cny(11)), "/soft/cost"),
        (ChangeAsk("b", "Ann", hard=cny(20), hard_currency="USD"), "/hard/cost/currency"),
    ],
)
async def test_limits_that_cannot_be_are_refused_by_their_place(
    budgets: Budgets, change: ChangeAsk, pointer: str
) -> None:
    """COST-11: no limit below what is spent and held, none without a reason, soft at most as high as hard."""
    await budgets.create(declaration("b", hard=cny(10)))
    await taken(budgets, "1", "b", 6)
    assert [error.pointer for error in (await fault_of(budgets.change(change))).errors] == [pointer]
    assert (await fault_of(budgets.change(ChangeAsk("c", "Ann")))).code == "not_found"


async def test_the_same_declaration_is_the_same_budget(budgets: Budgets) -> None:
    """COST-9: made twice is made once, also after its limits were changed; another declaration is refused."""
    first = await budgets.create(declaration("b", hard=cny(10)))
    changed = await budgets.change(ChangeAsk("b", "Ann: more", hard=cny(20)))
    assert await budgets.create(declaration("b", hard=cny(10))) == changed
    assert (changed.number, changed.created_at) == (first.number, first.created_at)
    assert (await fault_of(budgets.create(declaration("b", hard=cny(20))))).code == "already_exists"


@pytest.mark.parametrize(
    "wrong, pointer",
    [
        (declaration("x", "y"), "/budget/parent_id"),
        (declaration("x", "x"), "/budget/parent_id"),
        (declaration(""), "/budget/id"),
        (declaration("x", level=""), "/budget/level"),
        (declaration("x", currency="yuan"), "/budget/currency"),
        (declaration("x", "p", currency="USD"), "/budget/currency"),
        (declaration("x", "p", tenant="b"), "/budget/tenant"),
        (declaration("x", hard=cny(1), soft=cny(2)), "/budget/soft/cost"),
        (declaration("x", hard=cny(0, -1)), "/budget/hard/attempts"),
    ],
)
async def test_a_budget_that_cannot_be_is_refused_by_its_place(budgets: Budgets, wrong: Any, pointer: str) -> None:
    """COST-9: parents before children, hence no cycle; one currency and one tenant in a tree."""
    await budgets.create(declaration("p", tenant="a"))
    assert [error.pointer for error in (await fault_of(budgets.create(wrong))).errors] == [pointer]


async def test_a_child_takes_what_it_leaves_out_from_its_parent(budgets: Budgets) -> None:
    """COST-9: currency and tenant of the tree; budgets are listed parents first, by tenant and by root."""
    await budgets.create(declaration("p", tenant="a"))
    child = await budgets.create(declaration("c", "p", currency=""))
    await budgets.create(declaration("q", tenant="b"))
    grandchild = await budgets.create(declaration("g", "c"))
    assert (child.currency, child.tenant, grandchild.path) == ("CNY", "a", ("p", "c", "g"))

    async def listed(tenant: str = "", root_id: str = "", after: int = 0, most: int = 10) -> list[str]:
        return [budget.id for budget in await budgets.find(tenant, root_id, after, most)]

    assert await listed() == ["p", "c", "q", "g"]
    assert await listed(tenant="a") == ["p", "c", "g"]
    assert await listed(root_id="c") == ["c", "g"]
    assert await listed(after=child.number, most=1) == ["q"]


async def test_money_is_held_in_the_budgets_own_currency(budgets: Budgets) -> None:
    """COST-3, COST-9: the amount that the rates make of it; without a rate nothing is held."""
    await budgets.create(declaration("b", currency="USD", hard=cny(2)))
    assert (await taken(budgets, "1", "b", 14, USD=2)).hold.amounts == cny(2)
    assert (await fault_of(budgets.hold(hold("2", "b", 1)))).errors[0].pointer == "/amounts/cost"
    moved = await budgets.settle(SettleAsk("1", asked(7, USD=1)))
    assert moved.hold.settled == cny(1)
    assert (await fault_of(budgets.hold(hold("2", "nowhere", 1)))).code == "not_found"


async def test_of_many_holds_at_once_as_many_are_taken_as_fit(budgets: Budgets) -> None:
    """COST-11: 200 at once on a budget for 7, below one for 1000: exactly 7, each an entry at both levels."""
    await budgets.create(declaration("p", level="project", hard=cny(1000)))
    await budgets.create(declaration("b", "p", hard=cny(7)))
    outcomes = await asyncio.gather(*(budgets.hold(hold(str(number), "b", 1)) for number in range(200)))
    assert sum(isinstance(outcome, Moved) for outcome in outcomes) == 7
    assert await figures(budgets, "p", "b") == [(0, 7)] * 2
    assert [entry.sequence for entry in await budgets.entries("b", 0, 100)] == list(range(1, 8))


async def test_many_hands_on_one_tree_leave_it_sound(budgets: Budgets) -> None:
    """COST-11: Holds, settlements and releases of one turn, on branches that share levels, each decided as if alone."""
    await tree(budgets)
    await budgets.create(declaration("t", "e", level="shot", hard=cny(10)))
    await asyncio.gather(*(budgets.hold(hold(f"{n}", "st"[n % 2], 1)) for n in range(16)))
    calls: list[Callable[[str], Awaitable[Moved | Hold]]] = [
        lambda name: budgets.settle(SettleAsk(name, asked(2))),
        lambda name: budgets.release(ReleaseAsk(name)),
    ]
    more = [budgets.hold(hold(f"more-{n}", "s", 1)) for n in range(9)]
    await asyncio.gather(*(calls[n % 3 == 0](f"{n}") for n in range(16)), *more)
    [(project_spent, project_held)] = await figures(budgets, "p")
    assert (project_spent, await figures(budgets, "e")) == (20, [(project_spent, project_held)])


async def test_migrations_say_what_the_tables_are(pg_url: str) -> None:
    """OPS-7: the migrated schema and the declared tables are the same."""
    await emptied(pg_url)
    found = await differences(pg_url, schema=SCHEMA, metadata=metadata)
    assert [change for change in found if change[1].name != "test_time"] == []


async def test_what_is_still_held_can_be_found(budgets: Budgets) -> None:
    """COST-12: by the beginning of its id, a page at a time, without what has ended."""
    await budgets.create(declaration("b"))
    for name in ("task:1", "task:2", "task:3", "call:1", "Task:4"):
        await taken(budgets, name, "b", 1)
    await budgets.release(ReleaseAsk("task:2"))

    async def found(prefix: str, after: str = "", most: int = 10) -> list[str]:
        return [hold.id for hold in await budgets.open_holds(prefix, after, most)]

    assert await found("task:") == ["task:1", "task:3"]
    assert await found("task:", most=1) == ["task:1"]
    assert await found("task:", "task:1") == ["task:3"]
    assert await found("") == ["Task:4", "call:1", "task:1", "task:3"]
