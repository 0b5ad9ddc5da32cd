"""Those who make productions: they order, steer, pause, resume and redrive, and decide after a while, or never.

When the world is healed, one of them has all the patience that there is: what is paused goes on, and every question is
answered so that the Run can end.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from google.type.money_pb2 import Money

from libs.rpc.values import struct_from
from pointsman.runs.v1 import review_pb2, review_service_pb2, run_pb2, runs_service_pb2
from pointsman.runs.v1.review_service_pb2_grpc import ReviewServiceStub
from tests.simulation.network import Doors
from tests.simulation.people import TENANT, People
from tests.simulation.productions import KINDS, drawn_production

ENOUGH = Money(currency_code="CNY", units=100_000)
DECISIONS = review_pb2.Decision
KINDEST = (DECISIONS.DECISION_RAISE_BUDGET, DECISIONS.DECISION_APPROVE, DECISIONS.DECISION_WAIVE)
ENDED = frozenset(
    {
        run_pb2.RUN_STATE_SUCCEEDED,
        run_pb2.RUN_STATE_FAILED,
        run_pb2.RUN_STATE_TIMED_OUT,
        run_pb2.RUN_STATE_CANCELLED,
        run_pb2.RUN_STATE_DEAD_LETTER,
    }
)


@dataclass(slots=True)
class Producers:
    """All of one world, at the people's process."""

    people: People
    steered: dict[str, list[str]] = field(default_factory=dict)
    """By Run: the ids of the inputs that were acknowledged."""
    _raised: set[str] = field(default_factory=set)
    _commands: int = 0
    _reviews: Any = field(init=False)

    def __post_init__(self) -> None:
        self._reviews = ReviewServiceStub(Doors(self.people.process, "").to("runs"))

    async def produce(self, number: int, after_s: float) -> None:
        """One production: ordered, looked after for a while, perhaps cancelled."""
        await asyncio.sleep(after_s)
        people, rng, key = self.people, self.people.rng, f"production-{number}"
        request = runs_service_pb2.CreateRunRequest(
            tenant=TENANT, production=struct_from(drawn_production(rng, key, self._stretch)),
            idempotency_key=key, fingerprint=key,
        )  # fmt: skip
        reply = await people.insist(lambda: people.runs.CreateRun(request, timeout=people.timeout_s))
        if reply is None:
            return
        run_id = people.orders[key] = reply.run.id
        self.steered[run_id] = []
        people.counts["productions"] += 1
        for _ in range(rng.randrange(1, 9)):
            await asyncio.sleep(rng.expovariate(1 / 12.0) * self._stretch)
            await self._act(run_id)
        if rng.random() < 0.15:
            people.counts["productions cancelled"] += 1
            asked = runs_service_pb2.CancelRunRequest(run_id=run_id, tenant=TENANT)
            await people.insist(lambda: people.runs.CancelRun(asked, timeout=people.timeout_s))

    async def _act(self, run_id: str) -> None:
        acts = {self._steer: 3.0, self._decide: 5.0, self._pause: 1.0, self._resume: 1.5, self._redrive: 1.5}
        await self.people.rng.choices(list(acts), list(acts.values()))[0](run_id)

    async def _steer(self, run_id: str) -> None:
        data = struct_from({"text": f", in the manner of {self._commands}"})
        request = runs_service_pb2.SteerRunRequest(
            run_id=run_id, tenant=TENANT, kind=self.people.rng.choice(KINDS), data=data, request_id=self._command()
        )
        reply = await self._say("SteerRun", request)
        if reply is not None:
            self.steered[run_id].append(reply.steering_event_id)
            self.people.counts["steering inputs"] += 1

    async def _pause(self, run_id: str) -> None:
        request = runs_service_pb2.PauseRunRequest(run_id=run_id, tenant=TENANT, request_id=self._command())
        if await self._say("PauseRun", request) is not None:
            self.people.counts["pauses"] += 1

    async def _resume(self, run_id: str) -> None:
        await self._say(
            "ResumeRun",
            runs_service_pb2.ResumeRunRequest(run_id=run_id, tenant=TENANT, request_id=self._command()),
        )

    async def _redrive(self, run_id: str) -> None:
        """Everything that failed; or one node, with another prompt."""
        request = runs_service_pb2.RedriveRunRequest(
            run_id=run_id, tenant=TENANT, reason="again", request_id=self._command()
        )
        if self.people.rng.random() < 0.5:
            run = await self._run(run_id)
            able = [node.id for node in run.nodes if node.kind == "generate"]
            if able:
                request.node_id = self.people.rng.choice(able)
                request.input.update({"prompt": f"another one, {self._commands}"})
        if await self._say("RedriveRun", request) is not None:
            self.people.counts["redrives"] += 1

    async def _decide(self, run_id: str) -> None:
        """Whatever comes to mind, of what may be said."""
        for review in await self._open(run_id):
            decision = self.people.rng.choice(review.decisions)
            await self._say_of(review, decision)

    async def _say_of(self, review: Any, decision: int) -> None:
        request = review_service_pb2.DecideRequest(
            review_id=review.id, decision=decision, decider="lena", tenant=TENANT, subject_hash=review.subject_hash
        )
        if decision == DECISIONS.DECISION_CHANGE_INPUT:
            request.input.update({"prompt": f"otherwise, {self._command()}"})
        if decision == DECISIONS.DECISION_REROUTE:
            request.supply_id = self.people.rng.choice(list(self.people.offers.supply_slots))
        if decision == DECISIONS.DECISION_RAISE_BUDGET:
            request.budget.CopyFrom(ENOUGH)
        insist = self.people.insist
        if await insist(lambda: self._reviews.Decide(request, timeout=self.people.timeout_s)) is not None:
            self.people.counts[f"decided {DECISIONS.Name(decision)[9:].lower()}"] += 1

    async def _open(self, run_id: str) -> list[Any]:
        request = review_service_pb2.ListReviewsRequest(tenant=TENANT, run_id=run_id, page_size=100)
        reply = await self.people.insist(lambda: self._reviews.ListReviews(request, timeout=self.people.timeout_s))
        return list(reply.reviews)

    # --- at the end ---

    async def see_through(self) -> None:
        """Once more for each production: go on, and the kindest answer to every question."""
        for run_id in self.steered:
            run = await self._run(run_id)
            if run.state == run_pb2.RUN_STATE_PAUSED:
                await self._resume(run_id)
            if run.state in ENDED:
                continue
            for review in await self._open(run_id):
                await self._say_of(review, self._kindest(review))

    def _kindest(self, review: Any) -> int:
        """Money is given once for each level; who asks again and again goes without."""
        able = [decision for decision in KINDEST if decision in review.decisions]
        if able[0] == DECISIONS.DECISION_RAISE_BUDGET:
            if review.root_cause in self._raised:
                able = able[1:]
            self._raised.add(review.root_cause)
        return able[0]

    async def look_back(self) -> None:
        """Each production's stream, to its end."""
        for run_id in self.steered:
            await self.people.look_on(run_id)

    async def _run(self, run_id: str) -> Any:
        request = runs_service_pb2.GetRunRequest(run_id=run_id, tenant=TENANT)
        reply = await self.people.insist(lambda: self.people.runs.GetRun(request, timeout=self.people.timeout_s))
        return reply.run

    async def _say(self, method: str, request: Any) -> Any:
        return await self.people.insist(
            lambda: getattr(self.people.runs, method)(request, timeout=self.people.timeout_s)
        )

    def _command(self) -> str:
        self._commands += 1
        return f"command-{self._commands}"

    @property
    def _stretch(self) -> float:
        return self.people.offers.stretch
