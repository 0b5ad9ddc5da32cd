"""`RoutingService.ReplaySelection` over loopback."""

from collections.abc import AsyncIterator

import pytest

from libs.faults.fault import Fault
from pointsman.routing.v1 import routing_service_pb2 as pb
from services.routing.ports import Refused
from tests.contract.routing.replay_house import House, house, keep_round, price
from tests.unit.routing.dispatch_offers import catalog, supply


@pytest.fixture
async def home() -> AsyncIterator[House]:
    """Two Supplies at one price."""
    offers = catalog(supply("a/clip"), supply("b/clip"), prices={"second": price("second", "1.00")})
    async with house(offers) as made:
        yield made


async def test_every_round_of_a_task_is_replayed(home: House) -> None:
    """SEL-22, SEL-17: a refused round, a waiting one and the one that served are identical, each with its digest."""
    home.play.capacity.refusals = [Refused("supply a/clip", "concurrency", 5, 5)]
    home.play.provider.answers["a/clip"] = [Fault.of("provider_error", "500")]
    await home.play.submit()
    await home.play.work()
    await home.play.pass_time(8)
    rounds = await home.rounds("t1")
    assert [item.round for item in rounds] == [1, 2, 3]
    assert all(item.identical and not item.HasField("difference") for item in rounds)
    assert all(len(item.decision_digest) == 64 and item.decide_time.seconds for item in rounds)
    assert rounds[1].decision_digest != rounds[2].decision_digest
    only = await home.call("ReplaySelection", pb.ReplaySelectionRequest(task_id="t1", round=2, tenant="t"))
    assert [item.round for item in only.rounds] == [2]


async def test_a_touched_record_is_found_out(home: House) -> None:
    """SEL-22: what somebody changed in the store is told by its place and both values."""
    await home.play.submit()
    await home.play.work()
    (kept,) = await home.play.desk.store.rounds("t1")
    await keep_round(home, "t1", kept.record.replace('"chosen":"a/clip"', '"chosen":"b/clip"'))
    whole, found = await home.rounds("t1")
    assert (whole.identical, found.identical) == (True, False)
    assert (found.difference.pointer, found.difference.recorded, found.difference.replayed) == (
        "/chosen",
        '"b/clip"',
        '"a/clip"',
    )


async def test_what_is_not_there_is_not_found(home: House) -> None:
    """SEL-22: an unknown task, a foreign one and an unknown round, in the words of every other read."""
    await home.play.submit()
    for request in (
        pb.ReplaySelectionRequest(task_id="nobody"),
        pb.ReplaySelectionRequest(task_id="t1", tenant="other"),
        pb.ReplaySelectionRequest(task_id="t1", round=7),
    ):
        assert (await home.refused("ReplaySelection", request)).code == "not_found"
    assert list(await home.rounds("t1")) == []
