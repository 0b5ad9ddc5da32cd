"""Evidence for a Supply over real peers, a real database and a real provider."""

import hashlib
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration

from libs.faults.fault import Fault
from libs.rpc.faulting import faults_from_rpc
from pointsman.routing.v1 import catalog_pb2, catalog_service_pb2, routing_service_pb2, task_pb2, verification_pb2
from tests.integration.routing.stack import CALL_S, SEEDANCE, Stack

WAIT = Duration(seconds=25)


def catalog_yaml(stack: Stack, version: int, expect: str = "") -> str:
    """One exact account and one fallback that needs evidence."""
    accounts = {name: stack.studio.base_url(name) for name in ("aurora", "boreal")}
    for name in accounts:
        (stack.folder / name).write_text(stack.studio.key(name))
    channels = "".join(
        f"  - {{id: {name}-main, adapter: ark, base_url: '{url}', secret: 'file:{stack.folder}/{name}',"
        " poll_interval_s: 0.2, timeouts: {submit_s: 10, poll_s: 5}}\n"
        for name, url in accounts.items()
    )
    supplies = "".join(
        f"  - {{id: {name}-main/clip, channel: {name}-main, upstream_model: {SEEDANCE}, kind: video,\n"
        f"     capability_version: {version}, prices: [second], limits: {{concurrency: 2}}{expect if number else ''},\n"
        "     capabilities: {ratios: ['16:9'], duration_s: {min: 4, max: 15}, inputs: {reference_images: 9}}}\n"
        for number, name in enumerate(accounts)
    )
    return (
        f"version: 1\ncurrency: CNY\nchannels:\n{channels}supplies:\n{supplies}"
        "prices:\n  - {id: second, version: 1, currency: CNY, billing_mode: per_second, rate: '1.00'}\n"
        "policies:\n  - {id: stable}\n"
        "models:\n  - {id: clip, kind: video, policy: stable, published: true, bindings: [\n"
        "      {supply: aurora-main/clip, tier: exact}, {supply: boreal-main/clip, tier: fallback}]}\n"
    )


async def apply(stack: Stack, version: int, expect: str = "") -> catalog_pb2.Publication:
    """Apply, and how the model stands."""
    text = catalog_yaml(stack, version, expect)
    async with faults_from_rpc():
        answer = await stack.catalog.Apply(catalog_service_pb2.ApplyRequest(catalog_yaml=text), timeout=CALL_S)
    (standing,) = answer.publications
    return standing


async def verify(stack: Stack, name: str, supply: str = "boreal-main/clip") -> verification_pb2.Verification:
    """A verification, once it has ended."""
    request = catalog_service_pb2.VerifySupplyRequest(supply_id=supply, request_id=name, wait=WAIT)
    while True:
        async with faults_from_rpc():
            answer = (await stack.catalog.VerifySupply(request, timeout=CALL_S)).verification
        if answer.state != verification_pb2.VERIFICATION_STATE_RUNNING:
            return answer


async def listed(stack: Stack) -> dict[str, Any]:
    """The catalogue's objects by id."""
    answer = await stack.catalog.List(catalog_service_pb2.ListRequest(), timeout=CALL_S)
    return {item.id: item for item in answer.objects}


async def test_a_fallback_is_verified_and_opens_its_model(stack: Stack) -> None:
    """CAT-7: real small requests to that supply alone, checked and paid for, open the model; a newer capability version
    closes it again."""
    closed = await apply(stack, 1)
    assert not closed.published
    assert "pointsman supply verify boreal-main/clip" in closed.reasons[0]
    assert (await listed(stack))["clip"].reasons == closed.reasons

    told = await verify(stack, "v1")
    assert told.state == verification_pb2.VERIFICATION_STATE_PASSED, told
    assert [case.name for case in told.cases] == ["words", "reference_images"]
    assert (told.cost.currency_code, told.cost.units) == ("CNY", 8)
    submissions = await stack.submissions()
    assert len(submissions) == 2
    tasks = [await stack.task(case.task_id) for case in told.cases]
    assert {task.attempts[0].supply_id for task in tasks} == {"boreal-main/clip"}
    assert {task.state for task in tasks} == {task_pb2.TASK_STATE_SUCCEEDED}

    await stack.restart()
    assert (await verify(stack, "v1")) == told, "the verdict is on record, and nothing is paid twice"
    assert len(await stack.submissions()) == 2
    assert (await apply(stack, 1)).published
    assert (await listed(stack))["boreal-main/clip"].evidence.startswith("verified ")

    stale = await apply(stack, 2)
    assert not stale.published
    assert "capability version 1, the supply is at 2" in stale.reasons[0]


async def test_a_failed_set_is_no_evidence(stack: Stack) -> None:
    """CAT-7: a supply's own set is run; what comes back is measured, and a shortcoming keeps the model closed."""
    own = ", regression: [{name: long, input: {prompt: a gull, duration_s: 4}, expect: {duration_s: {min: 9}}}]"
    await apply(stack, 1, own)
    told = await verify(stack, hashlib.sha256(b"any id").hexdigest()[:40])
    assert told.state == verification_pb2.VERIFICATION_STATE_FAILED
    (case,) = told.cases
    assert (case.name, "not 9 to inf s" in case.reasons[0]) == ("long", True)
    refused = await apply(stack, 1, own)
    assert not refused.published
    assert "failed its verification (long: file 1 lasts 4" in refused.reasons[0]


async def test_what_is_not_there_is_not_verified(stack: Stack) -> None:
    """CAT-7: an unknown supply is not found, and nothing is sent."""
    await apply(stack, 1)
    with pytest.raises(Fault) as caught:
        await verify(stack, "v", "nobody/clip")
    assert caught.value.code == "not_found"
    assert await stack.submissions() == []


ANSWERING = """version: 1
currency: CNY
fx: {{USD: "7.00"}}
channels:
  - {{id: lumen-main, adapter: openai, base_url: '{lumen}', secret: 'file:{keys}/lumen'}}
  - {{id: opal-main, adapter: local-ocr, base_url: '{opal}', secret: 'file:{keys}/opal'}}
supplies:
  - {{id: lumen-main/chat, channel: lumen-main, upstream_model: gpt-4o-mini, kind: chat, prices: [tokens]}}
  - {{id: lumen-main/vectors, channel: lumen-main, upstream_model: text-embedding-3-small, kind: embedding,
     prices: [tokens], capabilities: {{dimensions: [256]}}}}
  - {{id: opal-main/read, channel: opal-main, upstream_model: own-font, kind: ocr, prices: [page]}}
prices:
  - {{id: tokens, version: 1, currency: USD, billing_mode: per_token, input_per_million: "0.15",
     output_per_million: "0.60"}}
  - {{id: page, version: 1, currency: CNY, billing_mode: per_page, rate: "0.01"}}
"""


@pytest.mark.parametrize("supply", ["lumen-main/chat", "lumen-main/vectors", "opal-main/read"])
async def test_supplies_that_answer_at_once_are_verified_by_calls(stack: Stack, supply: str) -> None:
    """CAT-7: words, vectors and what stands on a sign are checked; the call and its cost are on record."""
    urls = {name: stack.studio.base_url(name) for name in ("lumen", "opal")}
    for name in urls:
        (stack.folder / name).write_text(stack.studio.key(name))
    text = ANSWERING.format(keys=stack.folder, **urls)
    async with faults_from_rpc():
        await stack.catalog.Apply(catalog_service_pb2.ApplyRequest(catalog_yaml=text), timeout=CALL_S)
    told = await verify(stack, "v", supply)
    assert told.state == verification_pb2.VERIFICATION_STATE_PASSED, told
    (case,) = told.cases
    asked = routing_service_pb2.GetCallRequest(call_id=case.call_id)
    async with faults_from_rpc():
        call = (await stack.routing.GetCall(asked, timeout=CALL_S)).call
    assert (call.supply_id, len(call.attempts)) == (supply, 1)
    assert call.cost == case.cost == told.cost
    assert (await listed(stack))[supply].evidence.startswith("verified ")
