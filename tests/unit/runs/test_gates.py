"""Gates, canaries, backpressure and the move to another supply."""

from typing import Any

import pytest

from libs.kernel.canonical import digest
from services.runs.app.command_run import pause_run
from services.runs.domain.judging import Facts
from services.runs.domain.run import Artifact, NodeState, Run, RunState
from tests.unit.runs.fakes import OUT_OF_ORDER, REFUSED, FakeRouting
from tests.unit.runs.house import House, in_state, states

BUDGET = {"currency": "CNY", "cost": "100.00"}


def house() -> House:
    """One whose Tasks end as soon as they are handed over."""
    return House(FakeRouting(answering=True))


def shots(count: int, **fields: Any) -> list[dict[str, Any]]:
    """Items of one class."""
    return [{"id": f"S{n:02}", "shot_class": "action", "prompt": f"shot {n}", **fields} for n in range(1, count + 1)]


def fan_out(over: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    """A map that makes a picture of each."""
    node = {"kind": "generate", "model": "frame", "input": {"prompt": "${item.prompt}"}}
    return {"id": "frames", "kind": "map", "over": over, "node": node, **fields}


def production(*nodes: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A document."""
    return {"production": "p", "budget": BUDGET, "nodes": list(nodes), **fields}


FRAME = {"id": "frame", "kind": "generate", "model": "frame", "input": {"prompt": "a crane"}}
CLIP = {
    "id": "clip",
    "kind": "generate",
    "model": "clip",
    "input": {"first_frame": "${frame.artifact}"},
    "needs": ["good"],
}
GATE = {"id": "good", "kind": "gate", "needs": ["frame"]}


async def test_an_approval_is_of_what_was_seen() -> None:
    """GATE-1, GATE-2: what is expensive waits for the gate; another frame closes it again, and it says why."""
    home = house()
    run = await home.carry(await home.produce(production(FRAME, GATE, CLIP)))
    assert states(run) == {"frame": "succeeded", "good": "waiting_human", "clip": "pending"}
    run = await home.decide(run, "approve")
    assert run.state is RunState.SUCCEEDED
    first = run.nodes["good"].input_hash
    run = await home.redrive(run, "frame", input={"prompt": "a heron"})
    assert states(run)["good"] == "waiting_human"
    (review,) = await home.reviews(run)
    assert first[:12] in review.question.cause
    assert review.question.subject_hash != first
    made = len(home.routing.submitted)
    run = await home.decide(run, "approve")
    assert run.state is RunState.SUCCEEDED
    assert len(home.routing.submitted) == made + 1
    await home.rebuilds(run)


async def test_a_rejection_waits_for_another_subject() -> None:
    """HUMAN-2, GATE-2: a rejected gate keeps its word for this subject and asks again for the next."""
    home = house()
    run = await home.carry(await home.produce(production(FRAME, GATE, CLIP)))
    run = await home.decide(run, "reject", comment="the crane has three legs")
    assert run.state is RunState.DEAD_LETTER
    assert run.nodes["good"].failure is not None
    assert "three legs" in run.nodes["good"].failure.message
    run = await home.redrive(run, "frame", input={"prompt": "a crane with two legs"})
    assert states(run)["good"] == "waiting_human"


async def test_canaries_go_first_in_each_class() -> None:
    """GATE-3: one of each class runs; the others visibly await it, and follow when it is good."""
    home = house()
    home.routing.answering = False
    over = [*shots(3), {"id": "T01", "shot_class": "dialogue", "prompt": "talk"}]
    run = await home.carry(await home.produce(production(fan_out(over, canary={"per": "shot_class", "count": 1}))))
    assert [node.id for node in in_state(run, NodeState.RUNNING)] == ["frames", "frames/S01", "frames/T01"]
    message = await home.told(run)
    reasons = {node.id: node.waiting_reason for node in message.nodes}
    assert reasons["frames/S02"].startswith("awaiting_canary")
    home.routing.answering = True
    home.answer_all(run)
    run = await home.carry(run)
    assert run.state is RunState.SUCCEEDED
    assert len(await home.said(run, "canary_released")) == 2


async def test_a_person_releases_canaries() -> None:
    """GATE-3: with `release: gate` a person sees the canaries before the others follow."""
    home = house()
    canary = {"per": "shot_class", "count": 2, "release": "gate"}
    run = await home.carry(await home.produce(production(fan_out(shots(5), canary=canary))))
    assert len(home.routing.submitted) == 2
    (review,) = await home.reviews(run)
    assert len(review.question.artifacts) == 2
    run = await home.decide(run, "approve")
    assert run.state is RunState.SUCCEEDED
    assert [data["by"] for data in await home.said(run, "canary_released")] == ["lena"]


async def test_failures_within_the_tolerance_are_left_out() -> None:
    """GATE-3: up to `tolerate.failures` failed items leave the map and the Run successful."""
    home = house()
    home.routing.script = {"frames/S02": [REFUSED]}
    run = await home.carry(await home.produce(production(fan_out(shots(4), tolerate={"failures": 1}))))
    assert run.state is RunState.SUCCEEDED
    assert (await home.said(run, "node_completed"))[-1]["left_out"] == ["frames/S02"]
    assert len(run.nodes["frames"].artifacts) == 3


async def test_one_failure_too_many_stops_the_fan_out() -> None:
    """GATE-3: what has not begun is not begun any more."""
    home = house()
    home.routing.script = {"frames/S01": [REFUSED]}
    document = production(fan_out(shots(9), canary={"per": "shot_class", "count": 1}))
    run = await home.carry(await home.produce(document))
    assert run.state is RunState.DEAD_LETTER
    assert len(home.routing.submitted) == 1
    assert len(in_state(run, NodeState.CANCELLED)) == 8


async def test_producing_waits_for_people_and_goes_on() -> None:
    """GATE-4: too many open reviews hold producing back until few are left; both are events with time and cause."""
    home = house()
    gates = [{"id": f"g{n}", "kind": "gate"} for n in range(3)]
    late = {**FRAME, "needs": ["g0"]}
    document = production(*gates, late, reviews={"most": 2, "resume": 0})
    run = await home.carry(await home.produce(document))
    assert run.backpressure
    run = await home.decide(run, "approve", on="g0")
    assert home.routing.submitted == []
    message = await home.told(run)
    assert {node.id: node.waiting_reason for node in message.nodes}["frame"].startswith("review backlog")
    run = await home.decide(run, "approve")
    assert home.routing.submitted == []
    run = await home.decide(run, "approve")
    assert run.state is RunState.SUCCEEDED
    (began,), (ended,) = await home.said(run, "backpressure_started"), await home.said(run, "backpressure_ended")
    assert (began["by"], ended["by"]) == ("runs", "runs")


async def test_a_new_reference_is_tried_in_small() -> None:
    """GATE-5: while a reference is new, few shots use it at once; once one of them is good, all may."""
    home = house()
    home.routing.answering = False
    run = await home.carry(await home.produce(production(fan_out(shots(6, reference="mara v2"), trial=2))))
    assert len(in_state(run, NodeState.RUNNING)) == 3
    home.routing.answering = True
    home.answer_all(run)
    run = await home.carry(run)
    assert run.state is RunState.SUCCEEDED


async def test_another_supply_is_tried_by_one_first() -> None:
    """GATE-6: a map that is moved to another supply sends one item there; the queue is not moved in one step."""
    home = house()
    home.routing.answering = False
    run = await home.carry(await home.produce(production(fan_out(shots(5), concurrency=1))))
    run = await home.redrive(run, "frames", supply="b/two")
    home.routing.answering = True
    home.answer_all(run)
    home.routing.answering = False
    run = await home.carry(run)
    moved = [name for name, supply in home.routing.supplies.items() if supply == "b/two"]
    assert len(moved) == 1
    home.routing.answering = True
    home.answer_all(run)
    run = await home.carry(run)
    assert run.state is RunState.SUCCEEDED
    assert any("@b/two" in data["shot_class"] for data in await home.said(run, "canary_released"))


async def test_checks_look_at_what_was_made() -> None:
    """GATE-1, RUN-7: a check that finds something wrong asks a person, who has the item made again with other words."""
    home = house()
    run = await home.produce(production(fan_out(shots(2)), {"id": "looked", "kind": "check", "needs": ["frames"],
                                                           "checks": [{"min_size": "640x360"}]}))  # fmt: skip
    small = await _sha_of(home, "shot 2")
    home.examiner.facts[small] = Facts(small, "image/png", 100, width=64, height=36)
    run = await home.carry(run)
    (review,) = await home.reviews(run)
    assert review.question.subjects == ("frames/S02",)
    assert "640x360" in review.question.cause
    run = await home.decide(run, "change_input", input={"prompt": "shot 2, large"})
    assert run.state is RunState.SUCCEEDED
    assert home.routing.orders["frames/S02"].input == {"prompt": "shot 2, large"}
    await home.rebuilds(run)


async def test_a_check_with_nothing_to_look_at_asks() -> None:
    """GATE-1: what gave no file has passed no check; a person is asked."""
    home = house()
    looked = {"id": "looked", "kind": "check", "needs": ["good"], "checks": ["decodes"]}
    run = await home.carry(await home.produce(production({"id": "good", "kind": "gate"}, looked)))
    run = await home.decide(run, "approve")
    (review,) = await home.reviews(run)
    assert (review.question.kind, "no file" in review.question.cause) == ("check", True)


async def test_a_check_looks_at_the_files_of_its_subject() -> None:
    """GATE-1, GATE-2: what a subject holds is what is examined, whoever made it: a file that came with the document,
    and of what is needed only what is named; the reviewer sees the file that is not good, and another file is another
    question."""
    home = house()
    brought, other = "ab" * 32, {**FRAME, "id": "other", "input": {"prompt": "a heron"}}
    subject = {"files": ["${frame.artifact}", {"artifact": brought}], "title": "two pictures"}
    checks = [{"min_size": "640x360"}]
    looked = {"id": "looked", "kind": "check", "needs": ["other"], "subject": subject, "checks": checks}
    for small in (brought, digest(["frame", {"prompt": "a heron"}, "a/one"])):
        home.examiner.facts[small] = Facts(small, "image/png", 7, width=64, height=36)
    run = await home.carry(await home.produce(production(FRAME, other, looked)))
    (review,) = await home.reviews(run)
    assert review.question.artifacts == (Artifact(brought, "image/png", 7),)
    assert review.question.question.startswith("1 of what looked looked at")
    first = review.question.subject_hash
    run = await home.redrive(run, "frame", input={"prompt": "another crane"})
    (review,) = await home.reviews(run)
    assert review.question.subject_hash != first
    run = await home.decide(run, "waive")
    assert run.state is RunState.SUCCEEDED
    await home.rebuilds(run)


async def test_what_a_gate_is_about_is_shown() -> None:
    """HUMAN-1, GATE-2: the files of a gate's subject are what the reviewer sees; without any, what its needs gave."""
    home = house()
    named = {**GATE, "id": "named", "subject": {"logo": {"artifact": "cd" * 32}}}
    run = await home.carry(await home.produce(production(FRAME, named, {**GATE, "subject": {"title": "a crane"}})))
    asked = [review.question for review in await home.reviews(run)]
    shown = {each.node: [artifact.sha256 for artifact in each.artifacts] for each in asked}
    assert shown == {"named": ["cd" * 32], "good": [run.nodes["frame"].artifacts[0].sha256]}


@pytest.mark.parametrize("size, waived", [("64x64", False), ("9000x9000", True)])
async def test_an_approval_behind_a_check_binds_to_the_files(size: str, waived: bool) -> None:
    """GATE-2, HUMAN-1: what a check looked at, good or waived, goes on through it: the gate behind two of them shows
    the frame, another frame opens it again, and the result of the Run is that frame, once."""
    home = house()
    sized = {"id": "sized", "kind": "check", "needs": ["frame"], "checks": [{"min_size": size}]}
    again = {"id": "again", "kind": "check", "needs": ["sized"], "checks": ["decodes"]}
    run = await home.carry(await home.produce(production(FRAME, sized, again, {**GATE, "needs": ["again", "frame"]})))
    run = await home.decide(run, "waive") if waived else run
    (review,) = await home.reviews(run)
    assert review.question.artifacts == run.nodes["frame"].artifacts != ()
    run = await home.decide(run, "approve")
    assert (run.state, run.result and run.result.artifacts) == (RunState.SUCCEEDED, run.nodes["frame"].artifacts)
    run = await home.redrive(run, "frame", input={"prompt": "another crane"})
    run = await home.decide(run, "waive") if waived else run
    assert states(run)["good"] == "waiting_human"
    await home.rebuilds(run)


async def test_a_check_gives_a_run_no_file_twice() -> None:
    """GATE-1: what is last is what nothing but checks comes after; the check behind it adds nothing of its own."""
    home = house()
    run = await home.carry(await home.produce(production(FRAME, {**GATE, "kind": "check", "checks": ["decodes"]})))
    assert (run.state, run.result and run.result.artifacts) == (RunState.SUCCEEDED, run.nodes["frame"].artifacts)


async def test_a_check_whose_words_stay_looks_at_other_files_again() -> None:
    """GATE-2, STALE-1: a subject without a file binds to what the check looks at as well."""
    home = house()
    looked = {"id": "looked", "kind": "check", "needs": ["frame"], "subject": {"title": "x"}, "checks": ["decodes"]}
    end = {"id": "end", "kind": "gate", "needs": ["looked"]}
    run = await home.carry(await home.produce(production(FRAME, looked, end)))
    first = run.nodes["looked"].input_hash
    run = await home.redrive(run, "frame", input={"prompt": "a heron"})
    assert run.nodes["looked"].input_hash != first


async def test_what_is_broken_does_not_count_as_made() -> None:
    """RUN-7: an artifact that cannot be read fails its node, though its Task succeeded and was paid."""
    home = house()
    broken = await _sha_of(home, "a crane")
    home.examiner.facts[broken] = Facts(broken, "image/png", 100, unsound="is a broken picture")
    run = await home.carry(await home.produce(production(FRAME)))
    assert run.state is RunState.DEAD_LETTER
    assert run.failure is not None
    assert run.failure.code == "check_failed"
    assert home.budgets.spent == {run.budget_id: 1}


async def _sha_of(home: House, prompt: str) -> str:
    """What the fake provider makes of a prompt."""
    return digest(["frame", {"prompt": prompt}, "a/one"])


async def test_used_up_attempts_are_a_case_file() -> None:
    """RUN-4, DLQ-1: technical errors are tried again until the attempts are used; every retry says why."""
    home = house()
    home.routing.script = {"frame": [OUT_OF_ORDER] * 9}
    run = await home.produce(production({**FRAME, "budget": {"attempts": 3}}))
    for _ in range(9):
        run = await home.carry(run, seconds=300)
    assert run.state is RunState.DEAD_LETTER
    assert len(home.routing.submitted) == 3
    retries = [data["retry"] for data in await home.said(run, "node_waiting") if "retry" in data]
    assert retries == [f"provider_error; attempt {n} of 3; the input stays as it is" for n in (1, 2)]
    (letter, attempts), *_ = (await home.people.letters("a", run.id, False, "", 9))[0]
    assert (letter.desk, len(letter.task_ids), len(attempts)) == ("operations", 3, 3)


async def test_a_redrive_gives_all_tries_again() -> None:
    """DLQ-1: after a redrive the budget of attempts and the pauses begin anew; the failures before stay on record."""
    home = house()
    home.routing.script = {"frame": [OUT_OF_ORDER] * 5}
    run = await home.produce(production({**FRAME, "budget": {"attempts": 3}}))
    for _ in range(3):
        run = await home.carry(run, seconds=300)
    run = await home.redrive(run, "frame")
    for _ in range(2):
        run = await home.carry(run, seconds=2)
        run = await home.carry(run, seconds=2)
    assert states(run) == {"frame": "succeeded"}
    assert len(run.nodes["frame"].failures) == 5
    await home.rebuilds(run)


async def test_an_old_review_and_a_slow_desk_hold_producing_back_too() -> None:
    """GATE-4: the oldest review beyond its age, and more open than people decide within the horizon at their rate."""
    late = {**FRAME, "needs": ["g0"]}
    home = house()
    run = await home.carry(await home.produce(production({"id": "g0", "kind": "gate"}, late, reviews={"oldest": "1h"})))
    assert not run.backpressure
    run = await home.carry(run, seconds=3_601)
    assert run.backpressure.startswith("the oldest review")
    home = house()
    gates = [{"id": f"g{n}", "kind": "gate"} for n in range(5)]
    run = await home.carry(await home.produce(production(*gates, late, reviews={"horizon": "2h"})))
    for name in ("g4", "g3"):
        home.clock.advance(2_400)
        run = await home.decide(run, "waive", on=name)
    assert run.backpressure == ""
    home.clock.advance(6_000)
    run = await home.decide(run, "waive", on="g2")
    assert "at the rate of the last decisions" in run.backpressure
    await home.rebuilds(run)


async def test_wall_time_is_a_limit_of_its_own() -> None:
    """RUN-4: what takes longer than its budget of time is not tried again, whatever attempts are left."""
    home = house()
    home.routing.script = {"frame": [OUT_OF_ORDER] * 9}
    run = await home.produce(production({**FRAME, "budget": {"attempts": 9, "wall_time": "10m"}}))
    run = await home.carry(run)
    run = await home.carry(run, seconds=601)
    assert run.state is RunState.DEAD_LETTER
    assert len(home.routing.submitted) == 2
    assert run.failure is not None
    assert "wall time" in run.failure.message


async def test_every_wait_has_its_reason() -> None:
    """RUN-2: dependency, gate, canary, budget level, slot, review backlog, pause and backoff are told as such."""
    seen: set[str] = set()

    async def look(home: House, run: Run) -> None:
        seen.update(node.waiting_reason.partition(":")[0] for node in (await home.told(run)).nodes)

    home = house()
    home.routing.answering = False
    run = await home.carry(await home.produce(production(FRAME, GATE, CLIP)))
    await look(home, run)
    home.answer_all(run)
    await look(home, await home.carry(run))
    await pause_run(home.desk, "a", run.id, "", "")
    await look(home, await home.now(run))
    home = house()
    home.routing.answering = False
    over = [*shots(3), {"id": "T1", "shot_class": "talk", "prompt": "x"}]
    run = await home.carry(await home.produce(production(fan_out(over, canary={"count": 1}, concurrency=1))))
    await look(home, run)
    home = house()
    home.routing.script = {"frame": [OUT_OF_ORDER]}
    await look(home, await home.carry(await home.produce(production(FRAME))))
    home = house()
    tight = {"currency": "CNY", "cost": "1.00"}
    await look(home, await home.carry(await home.produce(production(FRAME, budget=tight))))
    home = house()
    document = production({"id": "g0", "kind": "gate"}, {"id": "g1", "kind": "gate"}, {**FRAME, "needs": ["g0"]},
                          reviews={"most": 2, "resume": 0})  # fmt: skip
    run = await home.carry(await home.produce(document))
    await look(home, await home.decide(run, "approve", on="g0"))
    assert {"dependency", "gate", "pause", "awaiting_canary", "slot", "backoff", "budget", "review backlog"} <= seen
