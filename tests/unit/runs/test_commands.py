"""Commands on a Run under way: steering, pause, resume, redrive, and what a change touches."""

import pytest

from libs.faults.fault import Fault
from services.runs.app.command_run import cancel_run, pause_run, resume_run, steer_run
from services.runs.app.redrive_run import Redrive, preview, redrive_run, total
from services.runs.domain.run import Run, RunState
from services.runs.wire.runs import steered_to_proto
from tests.unit.runs.fakes import OUT_OF_ORDER, REFUSED
from tests.unit.runs.house import House, states
from tests.unit.runs.test_gates import CLIP, FRAME, GATE, fan_out, house, production, shots

STYLED = {**FRAME, "consumes_steering": {"style": "input.prompt"}}


async def steer(home: House, run: Run, text: str = "at dusk", kind: str = "style", command: str = "") -> str:
    """Accept one input."""
    return (await steer_run(home.desk, home.plans, "a", run.id, kind, {"text": text}, command))[0]


async def test_an_input_is_consumed_at_the_start_of_an_attempt() -> None:
    """STEER-1, STEER-2: accepted with its own sequence, merged by the declared mapping, told with its latency."""
    home = house()
    gated = {**STYLED, "needs": ["go"]}
    run = await home.carry(await home.produce(production({"id": "go", "kind": "gate"}, gated)))
    first = await steer(home, run)
    await steer(home, run, "in rain")
    run = await home.carry(run, seconds=30)
    run = await home.decide(run, "approve")
    assert home.routing.orders["frame"].input == {"prompt": "a crane at dusk in rain"}
    consumed = await home.said(run, "run.steer.consumed")
    assert [data["sequence"] for data in consumed] == [1, 2]
    told = consumed[0]
    assert (told["steering_event_id"], told["node"], told["namespace"], told["kind"]) == (
        first,
        "frame",
        "frame",
        "style",
    )
    assert told["task_id"] == run.nodes["frame"].task_id
    assert told["queue_latency_seconds"] == 30
    assert "source_event_id" not in told
    await home.rebuilds(run)


async def test_a_command_that_came_before_says_the_same() -> None:
    """STEER-1, IDEM-1: the same input under its id is taken once; another one under that id is a conflict, not lost."""
    home = house()
    run = await home.produce(production(STYLED))
    first = await steer(home, run, command="c1")
    assert await steer(home, run, command="c1") == first
    for other in ({"text": "in rain"}, {"kind": "mood"}):
        with pytest.raises(Fault) as caught:
            await steer(home, run, command="c1", **other)
        assert caught.value.code == "idempotency_conflict"
    assert len((await home.now(run)).steering) == 1


async def test_a_style_holds_for_the_shots_not_yet_made() -> None:
    """STEER-2: consumed once, by the first shot that begins; those after it have it too, those before keep theirs."""
    home = house()
    home.routing.answering = False
    document = production(fan_out(shots(3), concurrency=1))
    document["nodes"][0]["node"]["consumes_steering"] = {"style": "input.prompt"}
    run = await home.carry(await home.produce(document))
    await steer(home, run)
    for _ in range(3):
        home.answer_all(run)
        run = await home.carry(run)
    assert run.state is RunState.SUCCEEDED
    prompts = [home.routing.orders[f"frames/S{n:02}"].input["prompt"] for n in (1, 2, 3)]
    assert prompts == ["shot 1", "shot 2 at dusk", "shot 3 at dusk"]
    (consumed,) = await home.said(run, "run.steer.consumed")
    assert (consumed["node"], consumed["namespace"]) == ("frames/S02", "frames")


async def test_the_answer_to_an_input_names_who_may_take_it() -> None:
    """STEER-1, STEER-2: of whatever kind it is accepted; the answer names the nodes that declare its kind, a map in the
    place of its items, and the kinds that there are."""
    home = house()
    map_ = fan_out(shots(2))
    map_["node"]["consumes_steering"] = {"style": "input.prompt"}
    document = production({"id": "go", "kind": "gate"}, {**STYLED, "needs": ["go"]}, map_)
    run = await home.carry(await home.produce(document))
    for kind, nodes in (("style", ["frame", "frames"]), ("stlye", [])):
        steered = await steer_run(home.desk, home.plans, "a", run.id, kind, {"text": "x"}, "")
        told = steered_to_proto(steered, kind, home.plan(steered.run))
        assert (told.steering_event_id, list(told.node_ids)) == (steered.id, nodes)
        assert list(told.declared_kinds) == ["style"]
    assert len((await home.now(run)).steering) == 2


async def test_what_is_left_is_superseded_with_the_end() -> None:
    """STEER-3: in the transaction of the terminal event, with its reason; the Run ends with the result that it had."""
    home = house()
    run = await home.carry(await home.produce(production({"id": "go", "kind": "gate"}, STYLED)))
    steered = await steer(home, run, kind="music")
    run = await home.decide(run, "approve")
    assert run.state is RunState.SUCCEEDED
    events = await home.events(run)
    assert [event.kind for event in events[-2:]] == ["run.steer.superseded", "run_completed"]
    assert events[-2].created_at == events[-1].created_at
    told = events[-2].data
    assert (told["reason"], told["steering_event_id"]) == ("unconsumed_at_final_boundary", steered)
    assert told["source_event_id"] == steered
    with pytest.raises(Fault) as caught:
        await steer(home, run)
    assert caught.value.code == "run_terminal"


async def test_an_input_keeps_its_root_over_a_pause() -> None:
    """STEER-1, STEER-4: accepted while paused, migrated at the resume, consumed once; latency counts from the first."""
    home = house()
    run = await home.carry(await home.produce(production({"id": "go", "kind": "gate"}, {**STYLED, "needs": ["go"]})))
    await pause_run(home.desk, "a", run.id, "lunch", "p1")
    root = await steer(home, run)
    home.clock.advance(600)
    await resume_run(home.desk, "a", run.id, "", "r1")
    run = await home.decide(run, "approve")
    accepted = await home.said(run, "run.steer.accepted")
    assert [data.get("source_event_id") for data in accepted] == [None, root]
    (consumed,) = await home.said(run, "run.steer.consumed")
    assert consumed["source_event_id"] == root
    assert consumed["steering_event_id"] == accepted[1]["steering_event_id"] != root
    assert consumed["queue_latency_seconds"] == 600
    await home.rebuilds(run)


async def test_a_repeated_command_is_one() -> None:
    """RUN-8, STEER-1: an input sent twice is one; a late repeat of a pause does not undo the resume after it."""
    home = house()
    run = await home.carry(await home.produce(production({"id": "go", "kind": "gate"}, STYLED)))
    assert await steer(home, run, command="s1") == await steer(home, run, command="s1")
    await pause_run(home.desk, "a", run.id, "", "p1")
    await resume_run(home.desk, "a", run.id, "", "r1")
    assert (await pause_run(home.desk, "a", run.id, "", "p1"))[0].state is RunState.RUNNING
    assert (await pause_run(home.desk, "a", run.id, "", "p2"))[0].state is RunState.PAUSED
    assert (await resume_run(home.desk, "a", run.id, "", "r1"))[0].state is RunState.PAUSED


async def test_a_command_says_whether_it_came_before() -> None:
    """IDEM-1, RUN-8: of a pause, a resume, an input and a redrive, the second of an id is told apart from the first."""
    home = house()
    home.routing.script = {"frame": [OUT_OF_ORDER] * 9}
    run = await home.carry(await home.produce(production({**FRAME, "budget": {"attempts": 1}})))
    asked = Redrive("frame", "again", command_id="redrive:k#1")
    assert [(await redrive_run(home.desk, home.plans, "a", run.id, asked))[2] for _ in range(2)] == [False, True]
    assert [(await pause_run(home.desk, "a", run.id, "", "pause:k#1"))[1] for _ in range(2)] == [False, True]
    assert [(await resume_run(home.desk, "a", run.id, "", "resume:k#1"))[1] for _ in range(2)] == [False, True]
    inputs = [
        await steer_run(home.desk, home.plans, "a", run.id, "style", {"text": "x"}, "steer:k#1") for _ in range(2)
    ]
    assert [told[2] for told in inputs] == [False, True]
    assert inputs[0][:2] == inputs[1][:2]


async def test_who_asked_is_on_record() -> None:
    """HUMAN-2, RUN-8: a pause, a resume, a redrive and a cancel name who asked for them, and why."""
    home = house()
    home.routing.script = {"frame": [OUT_OF_ORDER]}
    frame = {**FRAME, "budget": {"attempts": 1}}
    run = await home.carry(await home.produce(production(frame, {"id": "go", "kind": "gate"})))
    await pause_run(home.desk, "a", run.id, "lunch", "", who="ann")
    await resume_run(home.desk, "a", run.id, "back", "", who="ben")
    run = await home.redrive(run, "frame", who="cid")
    await cancel_run(home.desk, "a", run.id, "enough", who="dan")
    run = await home.carry(run)
    for kind, who, reason in (
        ("run_paused", "ann", "lunch"), ("run_resumed", "ben", "back"),
        ("run_redriven", "cid", "as a test wants it"), ("run_cancel_requested", "dan", "enough"),
    ):  # fmt: skip
        (told,) = await home.said(run, kind)
        assert (told["who"], told["reason"]) == (who, reason)


async def test_a_pause_submits_nothing_and_follows_what_is_accepted() -> None:
    """RUN-1a, RUN-8: nothing new is handed over while paused; what routing has is held there and followed."""
    home = house()
    home.routing.answering = False
    document = production(fan_out(shots(2), concurrency=1))
    run = await home.carry(await home.produce(document))
    paused, _ = await pause_run(home.desk, "a", run.id, "", "")
    assert paused.state is RunState.PAUSED
    assert home.routing.paused == {run.nodes["frames/S01"].task_id}
    home.answer_all(run)
    run = await home.carry(run)
    assert states(run)["frames/S01"] == "succeeded"
    assert len(home.routing.submitted) == 1
    home.routing.answering = True
    await resume_run(home.desk, "a", run.id, "", "")
    run = await home.carry(run)
    assert run.state is RunState.SUCCEEDED
    await home.rebuilds(run)


async def test_a_cancel_ends_everything_that_is_open() -> None:
    """RUN-8, EVENT-1: what has not begun ends at once, what is at work is asked to, and the end is told once."""
    home = house()
    home.routing.answering = False
    run = await home.carry(
        await home.produce(production(fan_out(shots(3), concurrency=2), GATE | {"needs": ["frames"]}))
    )
    await cancel_run(home.desk, "a", run.id, "changed our minds")
    run = await home.carry(run)
    assert run.state is RunState.RUNNING
    assert len(home.routing.cancelled) >= 2
    home.routing.end_cancelled()
    run = await home.carry(run)
    assert run.state is RunState.CANCELLED
    assert not run.questions
    assert set(home.budgets.held) == home.budgets.over
    await home.rebuilds(run)


async def test_a_preview_names_nodes_and_money() -> None:
    """STALE-1: before a change, what it would reach and what that may cost; nothing is changed by asking."""
    home = house()
    run = await home.carry(await home.produce(production(FRAME, GATE, CLIP)))
    run = await home.decide(run, "approve")
    reached = await preview(home.desk, home.plans, run, Redrive("frame", input={"prompt": "a heron"}))
    assert [(each.node, each.effect) for each in reached] == [
        ("frame", "redriven"), ("good", "stale"), ("clip", "stale"),
    ]  # fmt: skip
    cost = total(reached)
    assert cost is not None
    assert str(cost.amount) == "4.00"
    assert (await home.now(run)).last_sequence == run.last_sequence


async def test_an_equal_output_stops_the_wave() -> None:
    """STALE-1, RUN-5: dependants become stale by versions, and not where the output is what it was."""
    home = house()
    nodes = [FRAME, {"id": "clip", "kind": "generate", "model": "clip", "input": {"first_frame": "${frame.artifact}"}}]
    run = await home.carry(await home.produce(production(*nodes)))
    made = len(home.routing.submitted)
    run = await home.redrive(run, "frame")
    assert run.state is RunState.SUCCEEDED
    assert len(home.routing.submitted) == made
    assert await home.said(run, "node_stale") == []
    run = await home.redrive(run, "frame", input={"prompt": "a heron"})
    assert run.state is RunState.SUCCEEDED
    assert len(home.routing.submitted) == made + 2
    (stale,) = await home.said(run, "node_stale")
    assert (stale["node"], stale["was"] != stale["is"]) == ("clip", True)
    run = await home.redrive(run, "frame", input={"prompt": "a crane"})
    assert len(home.routing.submitted) == made + 2  # what was made for that input is kept
    await home.rebuilds(run)


async def test_only_what_a_change_touches_is_made_again() -> None:
    """STALE-1: of a map over another map's items, one item is made again."""
    home = house()
    motion = {"id": "motion", "kind": "map", "over": "${frames.items}",
              "node": {"kind": "generate", "model": "clip", "input": {"first_frame": "${item.artifact}"}}}  # fmt: skip
    run = await home.carry(await home.produce(production(fan_out(shots(5)), motion)))
    made = len(home.routing.submitted)
    run = await home.redrive(run, "frames/S03", input={"prompt": "another"})
    assert run.state is RunState.SUCCEEDED
    assert len(home.routing.submitted) == made + 2
    assert "motion/S03" in {data["node"] for data in await home.said(run, "node_stale")}


async def test_nothing_begins_behind_what_is_made_anew() -> None:
    """GATE-2, STALE-1: while what a gate was decided for is made anew, what waits behind it is not paid for."""
    home = house()
    clip = CLIP | {"input": {"prompt": "it flies"}, "needs": ["good", "time"]}
    time = {"id": "time", "kind": "gate", "question": "now?"}
    run = await home.carry(await home.produce(production(FRAME, GATE, time, clip)))
    run = await home.decide(run, "approve", on="good")
    home.routing.answering = False
    run = await home.redrive(run, "frame", input={"prompt": "a heron"})
    run = await home.decide(run, "approve", on="time")
    made = len(home.routing.submitted)
    assert states(run)["clip"] == "pending"
    (clip_told,) = [node for node in (await home.told(run)).nodes if node.id == "clip"]
    assert "frame is running" in clip_told.waiting_reason
    home.routing.answering = True
    home.answer_all(run)
    run = await home.carry(run, seconds=5)
    assert states(run) == {"frame": "succeeded", "good": "waiting_human", "time": "succeeded", "clip": "pending"}
    run = await home.decide(run, "approve", on="good")
    assert run.state is RunState.SUCCEEDED
    assert len(home.routing.submitted) == made + 1
    await home.rebuilds(run)


async def test_what_cannot_be_made_anew_holds_nobody_up() -> None:
    """GATE-2, STALE-1: where the new frame fails, what was approved before stands, and the Run comes to an end."""
    home = house()
    clip = CLIP | {"input": {"prompt": "it flies"}, "needs": ["good", "time"]}
    run = await home.carry(await home.produce(production(FRAME, GATE, {"id": "time", "kind": "gate"}, clip)))
    run = await home.decide(run, "approve", on="good")
    home.routing.script = {"frame": [REFUSED]}
    run = await home.redrive(run, "frame", input={"prompt": "a heron"})
    run = await home.decide(run, "approve", on="time")
    assert (states(run)["frame"], states(run)["clip"], run.state) == ("failed", "succeeded", RunState.DEAD_LETTER)
    await home.rebuilds(run)


async def test_a_redrive_says_why_it_cannot_be() -> None:
    """DLQ-1: a node that is not there, one at work, a Run that was cancelled, nothing that failed."""
    home = house()
    home.routing.answering = False
    run = await home.carry(await home.produce(production(FRAME, GATE)))
    for node, code in (("none", "not_found"), ("frame", "conflict"), ("", "conflict")):
        with pytest.raises(Fault) as caught:
            await home.redrive(run, node)
        assert caught.value.code == code
    await cancel_run(home.desk, "a", run.id)
    with pytest.raises(Fault) as caught:
        await home.redrive(run, "frame")
    assert caught.value.code == "run_terminal"


async def test_a_single_generation_is_redriven_after_it_failed() -> None:
    """DLQ-1, RUN-1a: on the same node, with a new Task; the Run has a new end."""
    home = house()
    home.routing.script = {"main": [OUT_OF_ORDER]}
    run = await home.carry(await home.create())
    assert run.state is RunState.FAILED
    run = await home.redrive(run, "")
    assert run.state is RunState.SUCCEEDED
    assert len(set(home.routing.submitted)) == 2
    assert (await home.kinds(run)).count("run_created") == 1
    await home.rebuilds(run)


async def test_a_late_command_stays_one_behind_many_inputs() -> None:
    """RUN-8: a pause that comes again behind a resume and many steering inputs does not pause."""
    home = House()
    run = await home.carry(await home.produce(production(FRAME)))
    await pause_run(home.desk, "a", run.id, "", "p1")
    await resume_run(home.desk, "a", run.id, "", "r1")
    for n in range(100):
        await steer_run(home.desk, home.plans, "a", run.id, "style", {"text": "darker"}, f"s{n}")
    assert (await pause_run(home.desk, "a", run.id, "", "p1"))[0].state is RunState.RUNNING


async def test_what_misses_something_is_redriven_with_that() -> None:
    """DLQ-1: by itself it would be a case file again at once; it is told what to redrive in its place."""
    home = house()
    home.routing.script = {"frame": [REFUSED]}
    run = await home.carry(await home.produce(production(FRAME, GATE, CLIP)))
    with pytest.raises(Fault, match="good needs frame, which is failed: redrive frame") as caught:
        await home.redrive(run, "clip")
    assert caught.value.code == "conflict"


async def test_past_its_deadline_nothing_is_redriven() -> None:
    """DLQ-1: a redrive that could make nothing is refused, and the case file stays open."""
    home = house()
    home.routing.script = {"frame": [REFUSED]}
    run = await home.carry(await home.produce(production(FRAME, deadline="1h")))
    home.clock.advance(3600)
    with pytest.raises(Fault) as caught:
        await home.redrive(run, "frame", input={"prompt": "a heron"})
    assert caught.value.code == "conflict"
    assert len((await home.people.letters("a", run.id, False, "", 9))[0]) == 1


async def test_a_key_with_another_body_is_a_conflict() -> None:
    """RUN-8, IDEM-1: the id of a command names its body; another body under the same key is refused."""
    home = house()
    run = await home.carry(await home.produce(production({"id": "go", "kind": "gate"}, STYLED)))
    await steer(home, run, command="steer:k1#aaaa")
    with pytest.raises(Fault) as caught:
        await steer(home, run, "at dawn", command="steer:k1#bbbb")
    assert caught.value.code == "idempotency_conflict"
    await pause_run(home.desk, "a", run.id, "", "pause:k1#aaaa")
    assert (await home.now(run)).state is RunState.PAUSED


async def test_a_cancel_holds_what_routing_has_at_once() -> None:
    """ATT-8: nothing more is sent once a cancel was answered, however long its way to the Tasks takes."""
    home = house()
    home.routing.answering = False
    run = await home.carry(await home.produce(production(fan_out(shots(3)))))
    await cancel_run(home.desk, "a", run.id)
    assert home.routing.paused == {run.nodes[f"frames/S{n:02}"].task_id for n in (1, 2, 3)}


async def test_nobody_decides_on_what_is_being_made_again() -> None:
    """GATE-2: while its subject is being made again a gate is closed; the question comes back with the new subject."""
    home = house()
    run = await home.carry(await home.produce(production(FRAME, GATE)))
    home.routing.answering = False
    run = await home.redrive(run, "frame", input={"prompt": "a heron"})
    assert await home.reviews(run) == []
    assert states(run) == {"frame": "running", "good": "pending"}
    home.answer_all(run)
    run = await home.carry(run)
    assert [review.question.node for review in await home.reviews(run)] == ["good"]
