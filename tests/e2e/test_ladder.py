"""The ladder of recovery on a live stack, seen through the public views of capacity and health (HLT-2..6)."""

import asyncio
from typing import Any

import grpc

from pointsman.common.v1 import subject_pb2
from pointsman.health.v1 import health_service_pb2
from pointsman.health.v1.health_service_pb2_grpc import HealthServiceStub
from tests.e2e.conftest import layout
from tests.support.stack import Stack
from tests.support.visitor import until

pytestmark = layout("all-in-one", alone=True)

RUNGS = {
    1: [1, 1, 1, 1, 1, 1],
    2: [1, 1, 1, 1, 1, 2],
    3: [1, 1, 1, 2, 2, 3],
    4: [1, 1, 1, 2, 3, 4],
    8: [1, 1, 2, 4, 6, 8],
}
"""Effective slots by configured ones: the probe, after its first success, at 25, 50, 75 %, healthy."""
STATES = ["probing", "probing", "recovering", "recovering", "recovering", "healthy"]
KEPT = ("state", "epoch", "recovery_successes", "effective_concurrency", "samples")


class Rung:
    """One Supply of so many slots."""

    def __init__(self, stack: Stack, slots: int) -> None:
        self.stack = stack
        self.slots = slots
        self.name = f"rung-{slots}"
        self.supply = f"{self.name}/clip"

    async def health(self) -> dict[str, Any]:
        """Its line of the health view."""
        return await self.stack.api.health_of("supplies", self.supply)

    async def effective(self) -> int | None:
        """Its slots by the capacity view."""
        slots: int | None = (await self.stack.api.capacity_of("supplies", self.supply))["effective"]
        return slots

    async def ends(self, prompt: str) -> tuple[str, str]:
        """How a Run of one Attempt ends."""
        run = await self.stack.api.finished(await self.stack.api.post_run(self.name, prompt))
        return run["status"], (run["error"] or {}).get("code", "")

    async def tripped(self) -> str:
        """Opens the circuit while a job from before runs on; it ends well afterwards. That job's Attempt, if any."""
        lab, api = self.stack.lab, self.stack.api
        old = ""
        if self.slots > 1:  # the only slot of one cannot be held while others fail
            await lab.account(self.name, render_s=3600.0)
            old = await api.post_run(self.name, "from before the trip")
            await until(lambda: api.capacity_of("supplies", self.supply), lambda line: line["in_use"] == 1)
            await until(
                lambda: api.task_of(old), lambda task: any(each["provider_task_id"] for each in task["attempts"])
            )
        await lab.script(self.name, {"status": 500}, repeat=2, prompt_contains="breaks")
        for number in range(2):
            assert await self.ends(f"breaks {number}") == ("failed", "provider_error")
        await until(self.health, lambda line: line["state"] not in ("healthy", "degraded"))
        if not old:
            return ""
        await lab.account(self.name, render_s=0.2)
        assert (await api.finished(old))["status"] == "succeeded"
        (attempt,) = (await api.task_of(old))["attempts"]
        return str(attempt["id"])

    async def climbed(self) -> None:
        """Step by step, with a forbidden prompt before every success."""
        for successes, (state, slots) in enumerate(zip(STATES, RUNGS[self.slots], strict=True)):
            await until(self.effective, lambda seen, want=slots: seen == want)  # type: ignore[misc]  # bound at once
            before = await until(self.health, lambda line, want=state: line["state"] == want)  # type: ignore[misc]  # the same
            assert before["effective_concurrency"] == slots
            if state == "healthy":
                return
            assert before["recovery_successes"] == successes
            assert await self.ends("[moderated] at the door") == ("failed", "content_rejected")
            assert await self.ends("[moderated-late] at the end") == ("failed", "content_rejected")
            assert [(await self.health())[name] for name in KEPT] == [before[name] for name in KEPT]
            assert await self.effective() == slots
            assert await self.ends(f"success {successes}") == ("succeeded", "")
            await until(self.health, lambda line, want=before: line != want)  # type: ignore[misc]  # the same

    async def events(self) -> list[tuple[str, str]]:
        """(kind, Attempt) of its whole history."""
        subject = subject_pb2.Subject(kind=subject_pb2.SUBJECT_KIND_SUPPLY, id=self.supply)
        asked = health_service_pb2.ListHealthEventsRequest(subject=subject, page_size=500)
        key = (("authorization", f"Bearer {self.stack.key}"),)
        async with grpc.aio.insecure_channel(self.stack.address_of("pointsman.health.v1.HealthService")) as channel:
            listed = await HealthServiceStub(channel).ListHealthEvents(asked, metadata=key, timeout=10)
        return [(event.kind, event.attempt_id) for event in listed.events]

    async def played(self) -> None:
        """From the trip to health."""
        old = await self.tripped()
        await until(self.health, lambda line: line["state"] == "probing")
        await self.climbed()
        ignored = [attempt for kind, attempt in await self.events() if kind == "stale_ignored"]
        assert ignored == ([old] if old else [])


async def test_the_ladder_is_seen_in_the_capacity_view(stack: Stack) -> None:
    """HLT-2, HLT-3, HLT-5, HLT-6, CAP-4, CAP-4a: 1 / 25 % / 50 % / 75 % / 100 % of 1, 2, 3, 4 and 8 slots.

    A refusal of content between two steps changes nothing, and the success of a job from before the trip is
    `stale_ignored`: it neither closes the circuit nor climbs.
    """
    await asyncio.gather(*(Rung(stack, slots).played() for slots in RUNGS))
