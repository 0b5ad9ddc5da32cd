"""Productions carried from their document to their end."""

from typing import Any

from services.runs.domain.run import NodeState, RunState
from tests.unit.runs.fakes import DOUBTED, OUT_OF_ORDER, REFUSED, FakeRouting
from tests.unit.runs.house import House, in_state, states
from tests.unit.runs.test_gates import fan_out, production, shots

SHOTS = [
    {"id": "S01", "shot_class": "dialogue", "prompt": "two people talk"},
    {"id": "S02", "shot_class": "dialogue", "prompt": "one leaves"},
    {"id": "S03", "shot_class": "action", "prompt": "a chase"},
    {"id": "S04", "shot_class": "action", "prompt": "a fall"},
]


def episode(tolerate: int = 0, **changes: Any) -> dict[str, Any]:
    """A small production with every kind of node."""
    return {
        "production": "episode",
        "budget": {"currency": "CNY", "cost": "100.00"},
        "nodes": [
            {"id": "approved", "kind": "gate", "deadline": "4h", "deputy": "lead"},
            {
                "id": "frames",
                "kind": "map",
                "over": SHOTS,
                "tolerate": {"failures": tolerate},
                "canary": {"per": "shot_class", "count": 1, "release": "auto"},
                "node": {
                    "kind": "generate",
                    "model": "frame",
                    "input": {"prompt": "${item.prompt}"},
                    "budget": {"attempts": 4, "cost": "4.00"},
                    "consumes_steering": {"style": "input.prompt"},
                },
                "needs": ["approved"],
            },
            {"id": "looked", "kind": "check", "needs": ["frames"], "checks": ["decodes", {"min_size": "640x360"}]},
            {
                "id": "motion",
                "kind": "map",
                "over": "${frames.items}",
                "node": {"kind": "generate", "model": "clip", "input": {"first_frame": "${item.artifact}"}},
                "needs": ["looked"],
            },
            {"id": "film", "kind": "generate", "model": "join", "input": {"clips": "${motion.artifacts}"}},
            {"id": "release", "kind": "gate", "needs": ["film"]},
        ],
        **changes,
    }


def house() -> House:
    """One whose Tasks end as soon as they are handed over."""
    return House(FakeRouting(answering=True))


async def test_an_episode_from_its_document_to_its_release() -> None:
    """RUN-1, GATE-1, GATE-3, EVENT-3: gates hold what is expensive, canaries go first, the rest follow, and the history
    alone tells the end."""
    home = house()
    run = await home.carry(await home.produce(episode()))
    assert states(run)["approved"] == "waiting_human"
    assert home.routing.submitted == []
    run = await home.decide(run, "approve")
    assert states(run)["release"] == "waiting_human"
    assert not in_state(run, NodeState.PENDING)
    run = await home.decide(run, "approve")
    assert run.state is RunState.SUCCEEDED
    assert len(set(home.routing.submitted)) == 9
    kinds = await home.kinds(run)
    assert kinds[0] == "run_created"
    assert kinds[-1] == "run_completed"
    assert kinds.count("canary_released") == 2
    await home.rebuilds(run)


async def test_the_result_of_a_production_is_what_nothing_else_takes_up() -> None:
    """EVENT-3: a node that others name in an expression alone is a step on the way like one in their `needs`."""
    home = house()
    run = await home.carry(await home.produce(episode()))
    run = await home.decide(await home.decide(run, "approve"), "approve")
    assert run.result is not None
    assert run.result.artifacts == run.nodes["film"].artifacts
    await home.rebuilds(run)


async def test_what_was_only_checked_is_the_result() -> None:
    """EVENT-3, GATE-1: a check that comes last gives nothing of its own, and takes nothing away."""
    home = house()
    looked = {"id": "looked", "kind": "check", "needs": ["frames"], "checks": ["decodes"]}
    run = await home.carry(await home.produce(production(fan_out(shots(2)), looked)))
    assert run.result is not None
    assert len(run.result.artifacts) == 2
    assert run.result.artifacts == run.nodes["frames"].artifacts
    await home.rebuilds(run)


async def test_words_of_one_node_are_the_input_of_others() -> None:
    """RUN-4: what a chat says stands in the prompts of what comes after, and a list that it writes is fanned out over
    like one of the document; both are part of the hash of what uses them."""
    home = house()
    shots = [{"id": "S01", "prompt": "a quay"}, {"id": "S02", "prompt": "a boat"}]
    home.routing.outputs = {"script": {"text": "Dawn.", "json": {"shots": shots}, "finish_reason": "stop"}}
    ask = {"messages": [{"role": "user", "content": "Write ${inputs.title}"}]}
    frame = {"kind": "generate", "model": "frame", "input": {"prompt": "${item.prompt}, ${script.output.text}"}}
    document = {
        "production": "words",
        "budget": {"currency": "CNY", "cost": "9.00"},
        "inputs": {"title": "a film"},
        "nodes": [
            {"id": "script", "kind": "generate", "model": "talk", "input": ask},
            {"id": "frames", "kind": "map", "over": "${script.output.json.shots}", "node": frame},
            {"id": "voice", "kind": "generate", "model": "voice", "input": {"text": "${script.output.text}"}},
        ],
    }
    run = await home.carry(await home.produce(document))
    assert run.state is RunState.SUCCEEDED
    orders = home.routing.orders
    assert orders["script"].input == {"messages": [{"role": "user", "content": "Write a film"}]}
    assert orders["frames/S02"].input == {"prompt": "a boat, Dawn."}
    assert orders["voice"].input == {"text": "Dawn."}
    home.routing.outputs["script"]["text"] = "Dusk."
    run = await home.redrive(run, "script", input={"temperature": 0})
    assert orders["voice"].input == {"text": "Dusk."}
    assert run.state is RunState.SUCCEEDED
    await home.rebuilds(run)


async def test_technical_errors_are_tried_again_and_content_is_not() -> None:
    """RUN-4, DLQ-1: the same input again after a pause, within the attempts; what was refused is a case file."""
    home = house()
    home.routing.script = {"frames/S01": [OUT_OF_ORDER, OUT_OF_ORDER], "frames/S03": [REFUSED]}
    run = await home.carry(await home.produce(episode(tolerate=1)))
    run = await home.decide(run, "approve")
    assert run.nodes["frames/S01"].retry_at is not None
    assert states(run)["frames/S03"] == "failed"
    run = await home.carry(run, seconds=300)
    run = await home.carry(run, seconds=300)
    assert states(run)["frames/S01"] == "succeeded"
    letters, _ = await home.people.letters("a", run.id, False, "", 10)
    assert [(letter.node, letter.desk) for letter, _ in letters] == [("frames/S03", "content")]
    await home.rebuilds(run)


async def test_a_redrive_with_another_input_mends_a_dead_letter() -> None:
    """DLQ-1, EVENT-1: a stopped fan-out ends as a dead letter; a redrive takes it up with all its history."""
    home = house()
    home.routing.script = {"frames/S03": [REFUSED]}
    run = await home.carry(await home.produce(episode()))
    run = await home.decide(run, "approve")
    assert run.state is RunState.DEAD_LETTER
    run = await home.redrive(run, "frames/S03", input={"prompt": "a walk"})
    assert states(run)["release"] == "waiting_human"
    assert home.routing.orders["frames/S03"].input == {"prompt": "a walk"}
    assert (await home.people.letters("a", run.id, False, "", 10))[0] == []
    await home.rebuilds(run)


async def test_nobody_can_tell_and_a_person_decides() -> None:
    """RUN-6, COST-12: a charge in doubt keeps its Hold and waits for a word."""
    home = house()
    home.routing.script = {"film": [DOUBTED]}
    run = await home.carry(await home.produce(episode()))
    run = await home.decide(run, "approve")
    assert states(run)["film"] == "waiting_human"
    assert run.nodes["film"].hold is not None
    run = await home.decide(run, "approve", comment="make it again")
    assert states(run)["film"] == "succeeded"
    assert "cost_anomaly" in await home.kinds(run)
    await home.rebuilds(run)


async def test_a_decision_reaches_only_the_nodes_that_it_is_about() -> None:
    """HUMAN-2: a stop of one node without a price leaves another alone whose id is a part of its own."""
    home = house()
    nodes = [{"id": name, "kind": "generate", "model": "dear", "input": {}} for name in ("a_film", "film")]
    budget = {"currency": "CNY", "cost": "9.00"}
    made = await home.produce({"production": "two", "budget": budget, "nodes": nodes})
    home.routing.unpriced = {"dear"}  # the price was there when the document was read
    run = await home.carry(made)
    assert [review.question.node for review in await home.reviews(run)] == ["a_film", "film"]
    run = await home.decide(run, "stop")
    assert states(run) == {"a_film": "failed", "film": "waiting_human"}
    await home.rebuilds(run)
