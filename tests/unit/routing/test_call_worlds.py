"""Whole calls in random worlds: whatever providers do under whatever policy, the laws of a call hold."""

import asyncio
from collections.abc import Sequence
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from libs.faults.fault import Fault
from services.routing.app.calls.invoke import invoke
from services.routing.app.calls.invoke_stream import invoke_stream
from services.routing.app.calls.open_call import Asked
from services.routing.domain.calls.call import Call, CallState, TryState
from services.routing.domain.catalog import Timeouts
from services.routing.ports import Refused
from tests.unit.routing.call_stage import CallStage, Then, call_stage, chat_catalog, chat_supply, chunk

TEXT = b'{"messages": [{"role": "user", "content": "Hello."}]}'
NAMES = ("a/talk", "b/talk", "c/talk")
CODES = ("rate_limited", "provider_error", "key_invalid", "connect_failed", "content_rejected", "invalid_request",
         "submission_unknown", "out_of_stock", "overloaded", "source_not_configured")  # fmt: skip
ENDS = frozenset({*CODES, "retry_exhausted", "stalled", "quota_full", "circuit_open_all", "no_sources",
                  "stream_interrupted", "deadline_exceeded"})  # fmt: skip
FULL = Refused("supply a/talk", "concurrency", 5, 5)
FAULTS = st.sampled_from(CODES).flatmap(
    lambda code: (
        st.none()
        | st.integers(1, 20_000).map(lambda ms: Fault.of(code, "words", retry_after_ms=ms))
        | st.just(Fault.of(code, "words"))
    )
)
THEN = st.builds(
    Then,
    fault=FAULTS,
    after_s=st.sampled_from([0.0, 0.5, 4.0, 12.0]),
    hangs=st.booleans().flatmap(lambda may: st.booleans() if may else st.just(False)),
    chunks=st.sampled_from([(), (chunk("", role="assistant"),), (chunk("a"), chunk("b"))]),
    apart_s=st.sampled_from([0.0, 1.0, 9.0]),
)
SYNC = st.fixed_dictionaries(
    {"total_timeout_s": st.sampled_from([5, 20, 60])},
    optional={
        "max_attempts": st.integers(1, 4),
        "quota_full": st.sampled_from(["fail_fast", "wait"]),
        "stall_window_s": st.sampled_from([3, 30]),
        "backoff_base_s": st.sampled_from([0.5, 2]),
        "selector": st.sampled_from(["health_aware", "round_robin", "least_inflight"]),
    },
)
SCRIPTS = st.lists(st.lists(THEN, min_size=1, max_size=4), min_size=1, max_size=3)


async def ended(play: CallStage, streamed: bool, leaves_s: float | None) -> str:
    """The code with which a call ends, '' for a success, 'left' for a caller who left."""
    asked = Asked("c", "t", "talk", TEXT, streamed=streamed)

    async def listen() -> None:
        if not streamed:
            await invoke(play.desk, asked)
            return
        async for piece in invoke_stream(play.desk, asked):
            assert isinstance(piece, (list, Call))

    work = asyncio.ensure_future(listen())
    began = play.clock.monotonic()
    while not work.done():
        for _ in range(60):
            await asyncio.sleep(0)
        if work.done():
            break
        if leaves_s is not None and play.clock.monotonic() - began >= leaves_s:
            work.cancel()
            leaves_s = None
            continue
        play.clock.advance(0.5)
    try:
        await work
    except Fault as fault:
        return fault.code
    except asyncio.CancelledError:
        return "left"
    return ""


@settings(max_examples=120)
@given(SCRIPTS, SYNC, st.lists(st.just(FULL), max_size=2), st.booleans(), st.none() | st.sampled_from([1.0, 6.0]))
@example([[Then(hangs=True)]], {"total_timeout_s": 5}, [], True, None)
@example([[Then(Fault.of("rate_limited", "x"))]], {"total_timeout_s": 60, "quota_full": "wait"}, [], False, None)
def test_the_laws_of_a_call_hold_in_every_world(
    scripts: Sequence[Sequence[Then]],
    sync: dict[str, Any],
    refusals: list[Refused],
    streamed: bool,
    leaves_s: float | None,
):
    """SYN-1..8, CAP-8: it ends within its time, with an end of the list; every provider call is a try, real ones within
    the budget; wall is the sum of its parts; slots are free and the record is there, whatever happened."""

    async def play_out() -> None:
        supplies = [chat_supply(name) for name in NAMES[: len(scripts)]]
        limits = Timeouts(submit_s=10, ttft_s=8, inter_token_s=6)
        play = call_stage(chat_catalog(*supplies, sync=sync, timeouts=limits))
        for name, script in zip(NAMES, scripts, strict=False):
            play.script(name, *script)
        play.capacity.refusals = list(refusals)
        code = await ended(play, streamed, leaves_s)
        for _ in range(60):
            await asyncio.sleep(0)
        await play.desk.errands.done()
        found = await play.store.get("c")
        assert found is not None
        call, rounds = found
        assert code in ENDS | {"", "left"}
        assert call.state is {"": CallState.SUCCEEDED, "left": CallState.ABANDONED}.get(code, CallState.FAILED)
        times = call.times
        assert times.wall_ns == times.productive_ns + times.stall_ns + times.overhead_ns
        slack_s = 1.0 if not streamed else 7.0  # a step of the clock; a stream may still hear its last token out
        assert times.wall_ns <= (sync["total_timeout_s"] + slack_s) * 1e9
        assert play.provider.sent() == len(call.tries)
        real = [item for item in call.tries if item.state in (TryState.FAILED, TryState.UNKNOWN)]
        assert len(real) <= sync.get("max_attempts", 3)
        assert all(item.state is not TryState.SENT for item in call.tries)
        assert not play.capacity.live()
        assert sorted(item.round for item in call.tries) == [
            item.round for item in rounds if item.outcome == "reserved"
        ]
        if times.productive_ns == 0:
            assert not real or all(item.latency_ns == 0 for item in real)

    asyncio.run(play_out())
