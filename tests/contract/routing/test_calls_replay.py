"""The rounds of synchronous calls decided again, through `RoutingService.ReplaySelection` over loopback (SEL-22)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from libs.faults.fault import Fault
from libs.rpc.faulting import faults_from_rpc
from pointsman.routing.v1 import replay_pb2
from pointsman.routing.v1 import routing_service_pb2 as pb
from services.routing.domain.catalog import Binding, Kind, Tier
from services.routing.domain.decision import HealthView
from services.routing.ports import Refused
from tests.unit.routing.call_stage import HELLO, MOST_S, CallStage, Then, call_stage, chat_catalog, chat_supply, serving

BROKEN = Fault.of("provider_error", "the provider answered 500")
BUSY = Fault.of("rate_limited", "429", retry_after_ms=700)


async def replays(play: CallStage, call_id: str = "c1", **more: Any) -> Sequence[replay_pb2.ReplayedRound]:
    """The replay of a call's rounds, once everything is settled."""
    await play.settled()
    async with faults_from_rpc():
        asked = pb.ReplaySelectionRequest(call_id=call_id, **more)
        return (await play.stub.ReplaySelection(asked, timeout=MOST_S)).rounds


@pytest.mark.parametrize("selector", ["health_aware", "round_robin", "least_inflight"])
async def test_every_round_of_a_call_is_replayed(selector: str):
    """SEL-22, SEL-17, SYN-9: a refused reservation, a failed try, holds, ranks and a wait come out byte for byte."""
    sync = {"selector": selector, "quota_full": "wait"}
    async with serving(call_stage(chat_catalog(sync=sync))) as play:
        play.capacity.refusals = [Refused("supply a/talk", "concurrency", 5, 5)]
        play.script("b/talk", Then(BROKEN), Then(BUSY), Then())
        play.script("a/talk", Then(BUSY))
        await play.invoke()
        rounds = await replays(play)
        assert len(rounds) >= 4
        assert all(item.identical and not item.HasField("difference") for item in rounds)
        assert all(len(item.decision_digest) == 64 and item.decide_time.seconds for item in rounds)
        assert [item.round for item in await replays(play, round=2, tenant="t")] == [2]
        kept = await play.store.get("c1")
        assert kept is not None
        assert all("switch supply until 3 of its tries have failed" in round_.record for round_ in kept[1])


async def test_a_call_that_nobody_served_is_replayed():
    """SEL-22: what was decided while every circuit was open, by health as it was then and not as it is."""
    async with serving(call_stage()) as play:
        for name in ("a", "b"):
            play.health.channels[name] = HealthView("circuit_open", epoch=2)
        assert (await play.refused()).code == "circuit_open_all"
        play.health.channels.clear()
        (only,) = await replays(play)
        assert only.identical


async def test_batches_are_replayed_each_with_what_was_left():
    """SEL-22, SYN-11: the digest of each round is that of the texts that were still to be done."""
    supply = chat_supply("a/talk", kind=Kind.EMBEDDING, capabilities={"max_batch": 2})
    async with serving(call_stage(chat_catalog(supply))) as play:
        two, one = ({"data": [{"index": place, "embedding": [1]} for place in range(count)]} for count in (2, 1))
        play.script("a/talk", Then(output=two), Then(output=two), Then(output=one))
        await play.invoke(given={"input": ["a", "b", "c", "d", "e"]})
        rounds = await replays(play)
        assert [item.identical for item in rounds] == [True] * 3
        assert len({item.decision_digest for item in rounds}) == 3


async def test_a_change_of_the_catalogue_does_not_change_the_past():
    """SEL-22, CAT-2: what a round leaves out is put back from the revision that it was decided under."""
    async with serving(call_stage()) as play:
        await play.invoke()
        known = await play.catalog.current()
        gone = replace(known.models["talk"], bindings=(Binding("b/talk", Tier.EXACT),), revision=2)
        play.catalog.revisions.append(replace(known, revision=2, models={"talk": gone}))
        await play.invoke("c2")
        assert [item.identical for call in ("c1", "c2") for item in await replays(play, call)] == [True, True]


async def test_a_touched_record_is_found_out():
    """SEL-22: what somebody changed in the store is told by its place and both values."""
    async with serving(call_stage()) as play:
        await play.invoke()
        await play.settled()
        kept = await play.store.get("c1")
        assert kept is not None
        touched = kept[1][0].record.replace('"chosen":"a/talk"', '"chosen":"b/talk"')
        await play.store.end(
            structs.replace(kept[0], id="c2"), [structs.replace(kept[1][0], task_id="c2", record=touched)]
        )
        (found,) = await replays(play, "c2")
        told = found.difference
        assert (told.pointer, told.recorded, told.replayed) == ("/chosen", '"b/talk"', '"a/talk"')


async def test_what_is_not_there_is_not_found():
    """SEL-22 AUTH-1: an unknown call, a foreign one and an unknown round; two subjects at once are refused."""
    async with serving(call_stage()) as play:
        await play.invoke(given=HELLO)
        for request in ({"call_id": "nobody"}, {"tenant": "other"}, {"round": 7}):
            with pytest.raises(Fault) as caught:
                await replays(play, **request)
            assert caught.value.code == "not_found"
        with pytest.raises(Fault) as caught:
            await replays(play, task_id="t1")
        assert [error.pointer for error in caught.value.errors] == ["/call_id"]
