"""A run of many Tasks with everything that can come between: every decision that it left is decided again.

In CI the run has 100 Tasks; `make drills` plays 1,000.
"""

import logging
import os
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from libs.faults.fault import Fault
from libs.host.hosting import Host
from libs.host.placement import placement
from libs.rpc.faulting import faults_from_rpc
from libs.rpc.values import struct_from
from pointsman.routing.v1 import catalog_service_pb2, task_pb2
from pointsman.routing.v1 import routing_service_pb2 as pb
from pointsman.routing.v1.catalog_service_pb2_grpc import CatalogServiceStub
from pointsman.routing.v1.routing_service_pb2_grpc import RoutingServiceStub
from services.__main__ import BUILDERS
from tests.integration.routing.stack import CALL_S, CONTEXTS
from tests.support.instant_provider import InstantProvider
from tests.support.visitor import until

TASKS = 1000 if os.environ.get("POINTSMAN_DRILLS") else 100
SEED = 20261130
WAVE = 50
OPEN = (task_pb2.TASK_STATE_QUEUED, task_pb2.TASK_STATE_DISPATCHING, task_pb2.TASK_STATE_RUNNING)
log = logging.getLogger(__name__)
FULL = {
    "reference_images": [{"url": "https://media.example/1.png"}],
    "reference_videos": [{"url": "https://media.example/2.mp4"}],
}
CATALOG = Path(__file__).parents[2] / "cases" / "catalogs" / "run.yaml"


def stumbling(chance: Random, token: str) -> Fault | None:
    """Of a hundred submissions: some 5xx, 429s with a time, lost answers, refused prompts; most are taken."""
    draw = chance.random()
    if draw < 0.10:
        return Fault.of("provider_error", "500")
    if draw < 0.13:
        return Fault.of("rate_limited", "429", retry_after_ms=200)
    if draw < 0.15:
        return Fault.of("submission_unknown", "reset")
    return Fault.of("content_rejected", "no") if draw < 0.17 else None


class Tempers:
    """A provider that goes through bad times: of every forty submissions eight in a row meet a server that is down."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, chance: Random, token: str) -> Fault | None:
        """A bad time, else as always."""
        self._count += 1
        return Fault.of("provider_error", "down") if self._count % 40 < 8 else stumbling(chance, token)


@dataclass
class Play:
    """The five contexts at work, and who plays the providers."""

    routing: Any
    catalog: Any
    provider: InstantProvider


@pytest.fixture
async def play(pg_url: str, tmp_path: Path) -> AsyncIterator[Play]:
    """Routing, capacity, health and cost_quote as they are, on a real database; providers that answer at once."""
    chance = Random(SEED)
    provider = InstantProvider(chance, {"a": Tempers(), "b": stumbling, "c": stumbling}, work_s=0.03)
    env = {"POINTSMAN_DATABASE_URL": pg_url, "POINTSMAN_DATA": str(tmp_path / "data"), "POINTSMAN_ADMIN": "off"}
    builders = {**BUILDERS, "provider_adapter": lambda env, channels, world: provider.context()}
    host = Host(placement(env, CONTEXTS, available=builders), env, builders)
    try:
        await host.start()
        channel = host.channels.to("routing")
        yield Play(RoutingServiceStub(channel), CatalogServiceStub(channel), provider)
    finally:
        await host.stop()


async def played(play: Play) -> list[str]:
    """All Tasks, of both models, some of them strict, with inputs that differ in what they cost and need.

    They come in waves, each before the last one has drained: more than the slots, less than would only wait.
    """
    chance, names = Random(SEED), []
    for number in range(TASKS):
        given = {"prompt": f"take {number}", "duration_s": chance.choice([4, 5, 8, 12])}
        whole = chance.random() < 0.7
        asked = pb.SubmitTaskRequest(request_id=f"t{number:04}", tenant="t", model="whole" if whole else "cheap")
        asked.input.CopyFrom(struct_from(given | (FULL if whole else {})))
        asked.options.degradation = "strict" if whole and chance.random() < 0.2 else ""
        async with faults_from_rpc():
            await play.routing.SubmitTask(asked, timeout=CALL_S)
        names.append(asked.request_id)
        if len(names) % WAVE == 0:
            await at_most_open(play, WAVE // 2)
    await at_most_open(play, 0)
    return names


async def at_most_open(play: Play, count: int) -> None:
    """Return when no more than that many Tasks have not ended."""
    asked = pb.ListTasksRequest(states=OPEN, page_size=count + 1)

    async def still_open() -> int:
        try:
            async with faults_from_rpc():
                return len((await play.routing.ListTasks(asked, timeout=CALL_S)).tasks)
        except Fault as fault:  # on a busy machine the database may have no connection to spare: asked again
            if not fault.retryable:
                raise
            return count + 1

    await until(still_open, lambda found: found <= count, within_s=100)


async def all_tasks(play: Play) -> list[task_pb2.Task]:
    """Every Task."""
    answer = await play.routing.ListTasks(pb.ListTasksRequest(page_size=1000), timeout=CALL_S)
    return list(answer.tasks)


async def replayed(play: Play, tasks: list[str]) -> tuple[Counter[bool], Counter[str]]:
    """How many rounds came out identical, and which sorts of rounds and fates there were."""
    identical: Counter[bool] = Counter()
    sorts: Counter[str] = Counter()
    for task_id in tasks:
        told = await play.routing.ReplaySelection(pb.ReplaySelectionRequest(task_id=task_id), timeout=CALL_S)
        identical.update(item.identical for item in told.rounds)
        kept = await play.routing.ListSelections(pb.ListSelectionsRequest(task_id=task_id), timeout=CALL_S)
        sorts.update(": ".join(item.outcome.split(": ")[:2]) for item in kept.selections)
        sorts.update(fate.reason for item in kept.selections for fate in item.candidates if fate.reason)
        sorts.update(f"tier {item.tier}" for item in kept.selections if item.chosen_supply_id)
    return identical, sorts


async def test_every_decision_of_a_run_is_replayed(play: Play) -> None:
    """SEL-22, VER-7: failures, switches, degradations, full and open Supplies among them, each saved round is decided
    again from its inputs alone, byte for byte; and no Supply had more jobs at once than its slots."""
    async with faults_from_rpc():
        applied = await play.catalog.Apply(
            catalog_service_pb2.ApplyRequest(catalog_yaml=CATALOG.read_text()), timeout=CALL_S
        )
    assert all(item.published for item in applied.publications), applied
    names = await played(play)
    tasks = await all_tasks(play)
    identical, sorts = await replayed(play, names)
    switched = sum(len({attempt.supply_id for attempt in task.attempts}) > 1 for task in tasks)
    figures = {"tasks": len(tasks), "rounds": identical.total(), "switched": switched, **dict(sorts)}
    log.warning("every round of the run was decided again: %s", figures)
    assert len(tasks) == len(names) == TASKS
    assert (identical[False], identical[True] >= TASKS) == (0, True)
    for sort in ("reserved", "waiting: capacity", "circuit_open", "tier exact", "tier degraded", "tier fallback"):
        assert sorts[sort] > 0, figures
    assert switched > 0
    assert {attempt.state for task in tasks for attempt in task.attempts} >= {
        task_pb2.ATTEMPT_STATE_SUCCEEDED,
        task_pb2.ATTEMPT_STATE_FAILED,
    }
    assert set(play.provider.jobs.values()) == {1}
    assert play.provider.most["a"] <= 6
    assert play.provider.most["b"] <= 5
    assert play.provider.most["c"] <= 5
