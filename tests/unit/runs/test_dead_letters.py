"""Case files: every node that ends without a result lies on somebody's desk, with a way back."""

from typing import Any

import pytest

from libs.faults.fault import Fault
from services.runs.app.command_run import cancel_run
from services.runs.app.redrive_run import Redrive, redrive_run
from services.runs.domain.desks import DeadLetter
from services.runs.domain.judging import Facts
from services.runs.domain.run import Run, RunState
from tests.unit.runs.fakes import DOUBTED, OUT_OF_ORDER, REFUSED
from tests.unit.runs.house import House, states
from tests.unit.runs.test_gates import CLIP, FRAME, GATE, fan_out, house, production, shots
from tests.unit.runs.test_productions import episode

MOTION: dict[str, Any] = {"id": "motion", "kind": "map", "over": "${frames.items}", "tolerate": {"failures": 1},
          "node": {"kind": "generate", "model": "clip", "input": {"first_frame": "${item.artifact}"}}}  # fmt: skip
READ = {**FRAME, "checks": [{"text": {"contains": "SALE", "model": "page-ocr"}}]}


async def cases(home: House, run: Run, *, every: bool = False) -> dict[str, DeadLetter]:
    """The case files that lie there, by node."""
    found, _ = await home.people.letters("a", run.id, every, "", 100)
    return {letter.node: letter for letter, _ in found}


async def test_past_its_retries_a_node_is_a_case_file() -> None:
    """DLQ-1: with its Tasks, what each attempt met, and the desk that should look at it."""
    home = house()
    home.routing.script = {"frame": [OUT_OF_ORDER] * 9}
    run = await home.produce(production({**FRAME, "budget": {"attempts": 2}}))
    for _ in range(4):
        run = await home.carry(run, seconds=300)
    (letter, attempts), *_ = (await home.people.letters("a", run.id, False, "", 9))[0]
    assert (letter.failure.code, letter.desk) == ("provider_error", "operations")
    assert letter.task_ids == run.nodes["frame"].task_ids
    assert [attempt["error"]["code"] for attempt in attempts] == ["provider_error"] * 2


async def test_what_waits_for_ever_is_a_case_file_too() -> None:
    """DLQ-1: for ever missing a dependency: at once, while others go on, each with the node that is to be mended and
    the desk that can; the Run tells what began it all."""
    home = house()
    home.routing.script = {"frame": [REFUSED]}
    run = await home.carry(await home.produce(production(FRAME, GATE, CLIP, {"id": "other", "kind": "gate"})))
    assert states(run) == {"frame": "failed", "good": "failed", "clip": "failed", "other": "waiting_human"}
    found = await cases(home, run)
    assert set(found) == {"frame", "good", "clip"}
    clip = found["clip"]
    assert (clip.failure.code, clip.desk, clip.task_ids, clip.cost) == ("dependency_missing", "content", (), None)
    assert "needs good, which will not be there because of frame: content_rejected" in clip.failure.message
    assert "redrive frame" in clip.failure.message
    run = await home.decide(run, "approve", on="other")
    assert run.state is RunState.DEAD_LETTER
    assert run.failure is not None
    assert run.failure.code == "content_rejected"
    await home.rebuilds(run)


async def test_a_redrive_of_what_was_missing_lets_all_go_on() -> None:
    """DLQ-1: what waited for it begins with it; the files are closed and kept."""
    home = house()
    home.routing.script = {"frame": [REFUSED]}
    run = await home.carry(await home.produce(production(FRAME, GATE, CLIP)))
    run = await home.redrive(run, "frame", input={"prompt": "a heron"})
    assert states(run) == {"frame": "succeeded", "good": "waiting_human", "clip": "pending"}
    assert await cases(home, run) == {}
    run = await home.decide(run, "approve")
    assert run.state is RunState.SUCCEEDED
    kept = await cases(home, run, every=True)
    assert {name: bool(letter.redriven_at) for name, letter in kept.items()} == {"frame": 1, "good": 1, "clip": 1}
    await home.rebuilds(run)


async def test_what_misses_two_things_comes_back_for_the_second() -> None:
    """DLQ-1: mended by half, a node is a new case file with the other half; a redrive of all takes all."""
    home = house()
    other = {**FRAME, "id": "other"}
    clips = ["${frame.artifact}", "${other.artifact}"]
    both = {"id": "both", "kind": "generate", "model": "join", "input": {"clips": clips}}
    home.routing.script = {"frame": [REFUSED], "other": [REFUSED, REFUSED]}
    run = await home.carry(await home.produce(production(FRAME, other, both)))
    run = await home.redrive(run, "frame")
    assert states(run) == {"frame": "succeeded", "other": "failed", "both": "failed"}
    found = await cases(home, run)
    assert set(found) == {"other", "both"}
    assert "needs other" in found["both"].failure.message
    assert len((await home.people.letters("a", run.id, True, "", 9))[0]) == 4
    run = await home.redrive(await home.redrive(run))
    assert run.state is RunState.SUCCEEDED
    assert await cases(home, run) == {}
    await home.rebuilds(run)


async def test_what_was_left_out_takes_what_needs_it_along() -> None:
    """DLQ-1, COST-10: a node that is waived for want of money, and the one behind it, lie on the desk of budgets."""
    home = house()
    clip = {**CLIP, "needs": ["frame"]}
    tight = {"currency": "CNY", "cost": "1.00"}
    run = await home.carry(await home.produce(production(FRAME, clip, budget=tight)))
    run = await home.decide(run, "waive")
    assert run.state is RunState.DEAD_LETTER
    found = await cases(home, run)
    assert {name: letter.desk for name, letter in found.items()} == {"frame": "budget", "clip": "budget"}
    assert (found["frame"].failure.code, found["frame"].failure.category) == ("budget_exhausted", "capacity")


async def test_what_can_never_be_verified_is_a_case_file() -> None:
    """DLQ-1, RUN-7: nobody is left who could read what a check wants read: what was made and paid lies there."""
    home = house()
    home.examiner.refusal = Fault.of("model_not_published", "model 'page-ocr' is not published")
    run = await home.carry(await home.produce(production(READ)))
    assert run.state is RunState.DEAD_LETTER
    found = (await cases(home, run))["frame"]
    assert (found.failure.code, found.desk) == ("check_failed", "content")
    assert str(found.cost and found.cost.amount) == "1.00"
    assert "cannot be judged: model_not_published" in found.failure.message
    assert found.artifacts


async def test_what_cannot_be_verified_now_is_looked_at_again() -> None:
    """DLQ-1: a reader that is away only now ends nothing."""
    home = house()
    home.examiner.refusal = Fault.of("supply_unavailable", "away")
    run = await home.carry(await home.produce(production(READ)))
    assert states(run) == {"frame": "running"}
    home.examiner.refusal = None
    (task_id,) = home.routing.submitted
    sha256 = home.routing.views[task_id].artifacts[0].sha256
    home.examiner.facts[sha256] = Facts(sha256, "image/png", 100, words={"page-ocr": "SALE"}, fingerprint="0" * 16)
    run = await home.carry(run)
    assert run.state is RunState.SUCCEEDED


async def test_bytes_that_are_gone_are_a_case_file() -> None:
    """DLQ-1, RUN-7: what was paid and is not in the store will never be verified."""
    home = house()
    home.routing.answering = False
    run = await home.carry(await home.produce(production(FRAME)))
    home.answer_all(run)
    sha256 = home.routing.views[run.nodes["frame"].task_id].artifacts[0].sha256
    home.examiner.facts[sha256] = Facts(sha256, "image/png", unsound="is not in the store")
    run = await home.carry(run)
    assert "is not in the store" in (await cases(home, run))["frame"].failure.message


async def test_a_map_that_a_person_ended_is_a_case_file() -> None:
    """DLQ-1, GATE-3: rejected canaries failed in no item of theirs; a redrive without a name takes their map up."""
    home = house()
    canary = {"per": "shot_class", "count": 2, "release": "gate"}
    run = await home.carry(await home.produce(production(fan_out(shots(5), canary=canary))))
    run = await home.decide(run, "reject", comment="too dark")
    assert run.state is RunState.DEAD_LETTER
    found = await cases(home, run)
    assert {name: letter.failure.code for name, letter in found.items()} == {"frames": "rejected_by_review"}
    run = await home.redrive(run)
    assert await cases(home, run) == {}
    run = await home.decide(run, "approve")
    assert run.state is RunState.SUCCEEDED
    await home.rebuilds(run)


async def test_a_map_that_stopped_is_told_by_its_items() -> None:
    """DLQ-1: one file for each item that failed, none for the map beside them; what comes after it has its own."""
    home = house()
    home.routing.script = {"frames/S01": [REFUSED], "frames/S02": [REFUSED]}
    run = await home.carry(await home.produce(production(fan_out(shots(3)), MOTION)))
    assert {name: letter.failure.code for name, letter in (await cases(home, run)).items()} == {
        "frames/S01": "content_rejected", "frames/S02": "content_rejected", "motion": "dependency_missing",
    }  # fmt: skip
    run = await home.redrive(run)
    assert run.state is RunState.SUCCEEDED
    assert states(run)["motion/S01"] == "succeeded"
    await home.rebuilds(run)


async def test_an_item_that_failed_begins_again_with_its_map() -> None:
    """DLQ-1: behind a redriven node a failed item and its map look at the list again, and nothing is left waiting."""
    home = house()
    home.routing.script = {"motion/S01": [REFUSED]}
    run = await home.carry(await home.produce(production(fan_out(shots(2)), MOTION)))
    assert run.state is RunState.SUCCEEDED
    assert set(await cases(home, run)) == {"motion/S01"}
    run = await home.redrive(run, "frames/S02")
    assert run.state is RunState.SUCCEEDED
    assert set(states(run).values()) == {"succeeded"}
    assert await cases(home, run) == {}
    await home.rebuilds(run)


async def test_an_item_is_redriven_while_its_map_waits_to_begin_again() -> None:
    """DLQ-1: a second redrive right after one that put its map back is about the same work, and no fault."""
    home = house()
    home.routing.script = {"motion/S01": [REFUSED]}
    run = await home.carry(await home.produce(episode()))
    run = await home.decide(run, "approve")
    assert states(run)["motion"] == "failed"
    for node in ("frames/S01", "motion/S01"):
        await redrive_run(home.desk, home.plans, "a", run.id, Redrive(node, "again"))
    assert states(await home.now(run))["motion"] == "pending"
    run = await home.decide(await home.carry(run), "approve", "release")
    assert run.state is RunState.SUCCEEDED
    await home.rebuilds(run)


async def test_a_list_that_is_none_is_a_case_file() -> None:
    """DLQ-1: a map whose list turns out not to be there has no item to tell it."""
    home = house()
    listed = {**fan_out([]), "over": "${frame.output.shots}"}
    run = await home.carry(await home.produce(production(FRAME, listed)))
    assert run.state is RunState.DEAD_LETTER
    assert (await cases(home, run))["frames"].failure.code == "validation_failed"


@pytest.mark.parametrize("kind, who", [("redrive", "lena"), ("cancel", "")])
async def test_a_charge_in_doubt_is_noted_before_it_is_forgotten(kind: str, who: str) -> None:
    """COST-12, RUN-6: whoever redrives the node or ends the Run leaves the doubt on record, as an alert too."""
    home = house()
    home.routing.script = {"frame": [DOUBTED]}
    run = await home.carry(await home.produce(production(FRAME)))
    if kind == "redrive":
        run = await home.redrive(run, "frame", who=who)
        assert run.state is RunState.SUCCEEDED
    else:
        await cancel_run(home.desk, "a", run.id)
        run = await home.carry(run)
        assert run.state is RunState.CANCELLED
    (noted,) = await home.said(run, "cost_anomaly")
    assert (noted["node"], noted["who"]) == ("frame", who)
    assert [alert for alert, _ in home.alerts.told].count("cost_anomaly") == 1


async def test_what_looks_again_brings_back_what_waits_for_it() -> None:
    """DLQ-1, GATE-2: a check that was looking when something before it was redriven says no; with the new subject it
    looks again, what was given up for it waits once more, and the files are closed. A second no is another file."""
    home = house()
    film = {"id": "film", "kind": "generate", "model": "join", "input": {"first": "${frame.artifact}"}}
    looked = {"id": "looked", "kind": "check", "needs": ["film"], "checks": READ["checks"]}
    home.examiner.refusal = Fault.of("supply_unavailable", "away")
    run = await home.carry(await home.produce(production(FRAME, film, looked, {**CLIP, "needs": ["looked"]})))
    assert states(run)["looked"] == "leased"
    home.routing.answering = False
    await home.redrive(run, "frame", input={"prompt": "a heron"})
    home.examiner.refusal = Fault.of("model_not_published", "gone")
    run = await home.decide(await home.carry(run), "reject", comment="not this one")
    assert (states(run)["looked"], states(run)["clip"]) == ("failed", "failed")
    assert set(await cases(home, run)) == {"looked", "clip"}
    home.routing.answering = True
    home.answer_all(run)
    run = await home.carry(run)
    assert (states(run)["looked"], states(run)["clip"]) == ("waiting_human", "stale")
    assert await cases(home, run) == {}
    run = await home.decide(run, "reject", comment="nor this one")
    assert run.state is RunState.DEAD_LETTER
    assert set(await cases(home, run)) == {"looked", "clip"}
    assert len((await home.people.letters("a", run.id, True, "", 9))[0]) == 4
    await home.rebuilds(run)
