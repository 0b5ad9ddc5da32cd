"""Which files a node may work on."""

from typing import Any

import pytest

from services.runs.app.command_run import steer_run
from services.runs.domain.run import RunState
from tests.unit.runs.test_gates import FRAME, fan_out, house, production, shots

DIGEST = "d" * 64
GIVEN = {"artifact": DIGEST}


def looking(images: Any, **fields: Any) -> dict[str, Any]:
    """A node that works on pictures."""
    picture = {"prompt": "like it", "reference_images": images}
    return {"id": "like", "kind": "generate", "model": "frame", "input": picture, **fields}


@pytest.mark.parametrize(
    "images, inputs",
    [
        ([GIVEN], {}),
        ("${inputs.it}", {"it": [GIVEN]}),
        (["${inputs.it}"], {"it": GIVEN}),
        ([{"artifact": "${inputs.it.artifact}"}], {"it": GIVEN}),
        (["${frame.artifact}"], {}),
        ([{"artifact": "${frame.artifact.artifact}"}], {}),
    ],
)
async def test_a_node_works_on_what_its_run_was_given_or_made(images: Any, inputs: dict[str, Any]) -> None:
    """AUTH-1: a material that was written as one has been judged; what the Run made is its own."""
    home = house()
    run = await home.carry(await home.produce(production(FRAME, looking(images), inputs=inputs)))
    assert run.state is RunState.SUCCEEDED


@pytest.mark.parametrize(
    "images, inputs",
    [
        ([{"artifact": "${inputs.it}"}], {"it": DIGEST}),
        ([{"artifact": "dd${inputs.it}"}], {"it": "d" * 62}),
        (["${inputs.it}"], {"it": {"artifact": DIGEST, "more": 1}}),
        ([{"artifact": DIGEST, "media_type": "${inputs.it}"}], {"it": ""}),
    ],
)
async def test_a_digest_alone_opens_nothing(images: Any, inputs: dict[str, Any]) -> None:
    """AUTH-1: a digest that an expression put together was proved by nobody; it may be another tenant's."""
    home = house()
    run = await home.carry(await home.produce(production(looking(images), inputs=inputs)))
    failure = run.nodes["like"].failure
    assert failure is not None
    assert (failure.code, DIGEST in failure.message) == ("validation_failed", True)
    assert home.routing.submitted == []
    await home.rebuilds(run)


async def test_an_item_brings_no_file_of_others() -> None:
    """AUTH-1: the same for the items of a map."""
    home = house()
    node = {"kind": "generate", "model": "frame", "input": looking([{"artifact": "${item.it}"}])["input"]}
    run = await home.carry(await home.produce(production(fan_out(shots(2, it=DIGEST)) | {"node": node})))
    assert run.state is RunState.DEAD_LETTER
    assert home.routing.submitted == []


async def test_what_a_command_brings_was_judged_with_it() -> None:
    """AUTH-1, STEER-2: files of steering and of a redrive are judged where they come in."""
    home = house()
    node = looking([], needs=["go"], consumes_steering={"look": "input.reference_images"})
    run = await home.carry(await home.produce(production({"id": "go", "kind": "gate"}, node)))
    await steer_run(home.desk, home.plans, "a", run.id, "look", {"value": [GIVEN]}, "")
    run = await home.decide(run, "approve")
    assert home.routing.orders["like"].input["reference_images"] == [GIVEN]
    other = {"artifact": "e" * 64}
    run = await home.redrive(run, "like", input={"reference_images": [other]})
    assert home.routing.orders["like"].input["reference_images"] == [other]
    assert run.state is RunState.SUCCEEDED


@pytest.mark.parametrize("kind", ["gate", "check"])
async def test_a_subject_shows_no_file_of_others(kind: str) -> None:
    """AUTH-1, GATE-1: nor is one looked at, or read, that only an expression named."""
    home = house()
    node = {"id": "looked", "kind": kind, "subject": {"artifact": "${inputs.it}"}}
    if kind == "check":
        node["checks"] = ["decodes"]
    run = await home.carry(await home.produce(production(node, inputs={"it": DIGEST})))
    failure = run.nodes["looked"].failure
    assert failure is not None
    assert (failure.code, DIGEST in failure.message) == ("validation_failed", True)
    assert await home.reviews(run) == []


async def test_nothing_is_compared_with_a_file_of_others() -> None:
    """AUTH-1: what a check would tell of a likeness, it would tell of that file."""
    home = house()
    alike = {"similar_to": {"artifact": "${inputs.it}"}}
    run = await home.carry(await home.produce(production({**FRAME, "checks": [alike]}, inputs={"it": DIGEST})))
    failure = run.nodes["frame"].failure
    assert failure is not None
    assert (failure.code, "was not given" in failure.message) == ("check_failed", True)
