"""Every backend is the model (VER-3): random histories, the same answer and the same figures after every step."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Coroutine
from datetime import timedelta
from typing import Any, ClassVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from libs.faults.fault import Fault
from services.capacity.domain.leases import Request
from services.capacity.domain.levels import HealthLimit, Kind, Level, Subject
from services.capacity.domain.pacing import Feedback, Outcome
from tests.contract.capacity.conftest import Bench, bench, emptied
from tests.contract.capacity.model import Model
from tests.support.valkey import ValkeyServer, emptied_valkey

log = logging.getLogger(__name__)
CHANNELS = ("a", "b")
SUPPLIES = ("a/x", "a/y", "b/z")
IDS = tuple(f"lease-{number}" for number in range(9))
HOLDERS = ("one", "two")
KINDS = ("video", "image")
SUBJECTS = (
    Subject(Kind.GLOBAL, "video"),
    *(Subject(Kind.CHANNEL, name) for name in CHANNELS),
    *(Subject(Kind.SUPPLY, name) for name in SUPPLIES),
)
GATES = st.sampled_from([0, 0, 1, 2, 3])
TOKENS = st.sampled_from([0, 0, 50, 100])
# Mostly a healthy view that nobody contradicts, sometimes a newer or an older one.
VIEWS = st.one_of(
    st.just(HealthLimit(1, 1, None)),
    st.builds(HealthLimit, st.integers(1, 3), st.integers(1, 4), st.sampled_from([None, 0, 1, 2])),
)
FEEDBACK = st.one_of(
    st.builds(Feedback, st.sampled_from(Outcome)),
    st.builds(Feedback, st.sampled_from(Outcome), st.sampled_from([5, 30, 7200]).map(lambda s: timedelta(seconds=s))),
)
TTLS = st.sampled_from([1, 10, 30, 90]).map(lambda seconds: timedelta(seconds=seconds))


class Backend(RuleBasedStateMachine):
    """One example runs on one new backend, made by `make`; `steps` counts them over all examples."""

    make: ClassVar[Callable[[], Coroutine[Any, Any, Bench]]]
    steps: ClassVar[list[int]]

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.ground = self.runner.run(type(self).make())
        self.model = Model(self.ground.clock.now())
        self.revision = 0

    def same(self, ours: Callable[[], Any], theirs: Callable[[], Awaitable[Any]]) -> None:
        """One step of both, and everything that can be seen afterwards."""
        self.steps[0] += 1

        async def step() -> tuple[Any, Any, Any]:
            try:
                answer = await theirs()
            except Fault as fault:
                answer = fault.code
            return answer, await self.ground.store.figures(), await self.ground.store.leases()

        try:
            expected = ours()
        except Fault as fault:
            expected = fault.code
        answer, figures, leases = self.runner.run(step())
        assert answer == expected
        assert figures == self.model.figures()
        assert leases == self.model.live()

    @initialize()
    def begin(self) -> None:
        declared = [Level(subject, subject.id[0] if subject.kind is Kind.SUPPLY else "") for subject in SUBJECTS[1:]]
        self.apply_all(declared)

    def apply_all(self, declared: list[Level]) -> None:
        self.revision += 1
        revision = self.revision
        store = self.ground.store
        self.same(lambda: self.model.apply_levels(revision, declared), lambda: store.apply_levels(revision, declared))

    @rule(
        figures=st.tuples(*[st.tuples(GATES, GATES, TOKENS)] * len(SUBJECTS)),
        dropped=st.sampled_from([None] * 4 + list(SUBJECTS)),
    )
    def apply(self, figures: Any, dropped: Subject | None) -> None:
        self.apply_all(
            [
                Level(subject, subject.id[0] if subject.kind is Kind.SUPPLY else "", *gates)
                for subject, gates in zip(SUBJECTS, figures, strict=True)
                if subject != dropped
            ]
        )

    @rule(
        lease_id=st.sampled_from(IDS), holder=st.sampled_from(HOLDERS), kind=st.sampled_from(KINDS),
        supply=st.sampled_from(SUPPLIES), views=st.tuples(VIEWS, VIEWS), tokens=st.sampled_from([0, 20, 60]),
        ttl=TTLS,
    )  # fmt: skip
    def reserve(self, lease_id: str, holder: str, kind: str, supply: str, views: Any, tokens: int, ttl: Any) -> None:
        request = Request(lease_id, holder, kind, supply[0], supply, views[0], views[1], tokens, ttl)
        self.same(lambda: self.model.reserve(request), lambda: self.ground.store.reserve(request))

    @rule(holder=st.sampled_from(HOLDERS), ids=st.lists(st.sampled_from(IDS), unique=True, min_size=1), ttl=TTLS)
    def renew(self, holder: str, ids: list[str], ttl: timedelta) -> None:
        wanted = tuple(ids)
        self.same(lambda: self.model.renew(holder, wanted, ttl), lambda: self.ground.store.renew(holder, wanted, ttl))

    @rule(
        lease_id=st.sampled_from(IDS), holder=st.sampled_from(HOLDERS), used=st.sampled_from([None, None, 0, 200]),
        feedback=FEEDBACK,
    )  # fmt: skip
    def release(self, lease_id: str, holder: str, used: int | None, feedback: Feedback) -> None:
        self.same(
            lambda: self.model.release(lease_id, holder, used, feedback),
            lambda: self.ground.store.release(lease_id, holder, used, feedback),
        )

    @rule(
        ids=st.permutations(IDS), returned=st.integers(0, 3), asked=st.integers(1, 5), feedback=FEEDBACK,
        supplies=st.lists(st.sampled_from(SUPPLIES), min_size=5, max_size=5), view=VIEWS,
        tokens=st.sampled_from([0, 20, 60]), ttl=TTLS,
    )  # fmt: skip
    def together(
        self, ids: Any, returned: int, asked: int, feedback: Any, supplies: Any, view: Any, tokens: int, ttl: Any
    ) -> None:
        """What is asked in one turn is answered as if it were asked one by one, releases first."""
        back = sorted(ids[:returned])
        requests = [
            Request(name, "one", "video", supply[0], supply, HealthLimit(1, 1, None), view, tokens, ttl)
            for name, supply in zip(ids[returned : returned + asked], supplies, strict=False)
        ]

        def ours() -> list[Any]:
            answers: list[Any] = [self.model.release(name, "one", 30, feedback) for name in back]
            for request in requests:
                try:
                    answers.append(self.model.reserve(request))
                except Fault as fault:
                    answers.append(fault.code)
            return answers

        async def theirs() -> list[Any]:
            store = self.ground.store
            asks = [store.release(name, "one", 30, feedback) for name in back]
            answers = await asyncio.gather(*asks, *map(store.reserve, requests), return_exceptions=True)
            return [answer.code if isinstance(answer, Fault) else answer for answer in answers]

        self.same(ours, theirs)

    @rule(subject=st.sampled_from(SUBJECTS), view=VIEWS)
    def hear(self, subject: Subject, view: HealthLimit) -> None:
        self.same(lambda: self.model.hear({subject: view}), lambda: self.ground.store.hear({subject: view}))

    @rule(seconds=st.sampled_from([0.5, 1, 9, 10, 30, 59.999999, 60, 121]))
    def advance(self, seconds: float) -> None:
        self.runner.run(self.ground.advance(seconds))
        self.model.now = self.ground.clock.now()
        self.same(lambda: None, lambda: asyncio.sleep(0))

    @rule()
    def sweep(self) -> None:
        async def swept() -> None:
            await self.ground.store.sweep()

        self.same(self.model.sweep, swept)

    def teardown(self) -> None:
        self.runner.run(self.ground.store.close())
        self.runner.close()


def backend(make: Callable[[], Coroutine[Any, Any, Bench]]) -> type[Backend]:
    """The machine for one backend."""
    return type("Machine", (Backend,), {"make": staticmethod(make), "steps": [0]})


SCALE = int(os.environ.get("POINTSMAN_DIFFERENTIAL", "1"))
"""How many times as long as in the ordinary suite: `make differential` takes 20, above ten thousand steps a backend."""


def proven(make: Callable[[], Coroutine[Any, Any, Bench]], examples: int) -> None:
    """Run the machine; a suite that was cut short proves nothing."""
    machine = backend(make)
    run_state_machine_as_test(machine, settings=settings(max_examples=examples * SCALE, stateful_step_count=40))
    log.warning("%s steps", machine.steps[0])
    assert machine.steps[0] > 8 * examples * SCALE


def test_memory_is_the_model() -> None:
    """VER-3, CAP-1, CAP-2, CAP-4, CAP-4a: the memory store answers as the model over thousands of random steps."""
    proven(lambda: bench("memory:"), 100)


def test_postgres_is_the_model(pg_module_url: str) -> None:
    """VER-3, CAP-1, CAP-2, CAP-4, CAP-4a: PostgreSQL answers as the model; time is the test's."""

    async def make() -> Bench:
        await emptied(pg_module_url)
        return await bench(pg_module_url)

    proven(make, 25)


def test_valkey_is_the_model(valkey_server: ValkeyServer) -> None:
    """VER-3, CAP-5: Valkey answers as the model, by the same script as in production; time is the test's."""

    async def make() -> Bench:
        emptied_valkey(valkey_server.url)
        return await bench(valkey_server.url)

    proven(make, 25)
