"""What one Run has made, another does not make again, where both say that they want it so."""

from typing import Any

from libs.kernel.canonical import digest
from services.runs.domain.engine import Record, next_commands
from services.runs.domain.judging import Facts
from services.runs.domain.run import RunState
from tests.unit.runs.fakes import PRICE
from tests.unit.runs.house import House
from tests.unit.runs.test_gates import CLIP, FRAME, GATE, fan_out, house, production, shots

MEMO = {**FRAME, "memo": True}


async def finished(home: House, *nodes: dict[str, Any]) -> Any:
    """A production of these nodes, carried as far as it goes."""
    return await home.carry(await home.produce(production(*nodes)))


async def test_another_run_takes_what_is_made() -> None:
    """RUN-5: an equal input of another Run with `memo` calls nobody, costs nothing, and says whose result it is."""
    home = house()
    first = await finished(home, MEMO)
    second = await finished(home, MEMO)
    assert second.state is RunState.SUCCEEDED
    assert len(home.routing.submitted) == 1
    assert (second.usage.cost, second.usage.attempts, second.nodes["frame"].hold) == (None, 0, None)
    assert second.nodes["frame"].artifacts == first.nodes["frame"].artifacts != ()
    (told,) = await home.said(second, "node_completed")
    assert told["reused_from"] == {"run": first.id, "node": "frame"}
    assert [made["sha256"] for made in told["artifact_list"]] == told["artifacts"]
    assert set(home.budgets.held) == home.budgets.over
    await home.rebuilds(second)


async def test_both_must_want_it() -> None:
    """RUN-5: without `memo` on either side, with another input, or for another tenant, it is made."""
    home = house()
    await finished(home, FRAME)
    await finished(home, MEMO)  # nobody said before that it may be taken
    await finished(home, FRAME)
    await finished(home, {**MEMO, "input": {"prompt": "a heron"}})
    assert len(home.routing.submitted) == 4
    assert await home.runs.memo("b", digest([]), "") is None


async def test_items_of_a_map_take_it_one_by_one() -> None:
    """RUN-5: of four shots two were made before; the other two are made."""
    home = house()
    both = fan_out(shots(2))
    both["node"] = {**both["node"], "memo": True}
    await finished(home, both)
    second = await finished(home, {**both, "over": shots(4)})
    assert second.state is RunState.SUCCEEDED
    assert len(home.routing.submitted) == 4
    assert len(second.nodes["frames"].artifacts) == 4
    await home.rebuilds(second)


async def test_a_memo_without_its_file_is_not_used() -> None:
    """RUN-5, RUN-7: what is gone or damaged by now is made again, and the new one is the memo."""
    home = house()
    first = await finished(home, MEMO)
    (made,) = first.nodes["frame"].artifacts
    home.examiner.facts[made.sha256] = Facts(made.sha256, unsound="is not in the store")
    home.routing.answering = False
    second = await finished(home, MEMO)
    assert len(home.routing.submitted) == 2
    del home.examiner.facts[made.sha256]
    home.answer_all(second)
    second = await home.carry(second)
    third = await finished(home, MEMO)
    (told,) = await home.said(third, "node_completed")
    assert told["reused_from"]["run"] == second.id


async def test_what_was_taken_back_is_no_memo() -> None:
    """RUN-5, COMP-1: a rejected artifact is not handed on to the next Run."""
    home = house()
    whole = ({**MEMO, "compensation": "invalidate_artifact"}, GATE, CLIP)
    first = await finished(home, *whole)
    await home.decide(first, "reject", comment="rights")
    await finished(home, *whole)
    assert home.routing.submitted.count(first.nodes["frame"].task_id) == 1
    assert len(home.routing.submitted) == 2


async def test_a_hold_that_was_asked_for_before_a_crash_goes_back() -> None:
    """RUN-5, COST-9: the Hold of a try whose result another Run has made meanwhile does not stay."""
    home = house()
    await finished(home, MEMO)
    slow = await home.produce(production(MEMO))
    (command,) = next_commands(home.plan(slow), slow, home.clock.now())
    assert isinstance(command, Record)
    begun = await home.recorder.record(slow, command.drafts)
    assert begun is not None
    task = begun.nodes["frame"].task_id
    await home.budgets.hold(task, begun.budget_id, PRICE, 1, "whoever took it has died since")
    after = await home.carry(begun)
    assert after.state is RunState.SUCCEEDED
    assert len(home.routing.submitted) == 1
    assert task in home.budgets.over
    assert set(home.budgets.held) == home.budgets.over
