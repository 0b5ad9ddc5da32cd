"""The pure cores of synchronous calls: accounting, budgets, patience, selectors, settings, sizes (SYN)."""

from datetime import timedelta

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from libs.faults.fault import Fault
from services.routing.domain.calls.chunks import Heard
from services.routing.domain.calls.patience import LASTING, Patience
from services.routing.domain.calls.retry_budget import Next, RetryBudget, consumes
from services.routing.domain.calls.selectors import NO_RANKS, Rota, ranks_of
from services.routing.domain.calls.sizing import digest_of, facts_to_quote, input_tokens, stepped, tokens_to_reserve
from services.routing.domain.calls.stall_clock import StallClock, nanos, until_stalled_s
from services.routing.domain.calls.sync_settings import (
    DEFAULTS,
    QuotaFull,
    Selector,
    SyncSettings,
    incoherences,
    sync_of,
    watchdog_incoherence,
)
from services.routing.domain.capability import misfits
from services.routing.domain.catalog import Kind, Policy, Timeouts
from services.routing.domain.decision import Fate
from services.routing.domain.request_facts import facts_of, normalised
from services.routing.domain.task import Failure
from services.routing.settings import Settings
from tests.support.worlds import START
from tests.unit.routing.call_stage import chat_supply

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["begin_try", "burned", "free", "begin_wait", "end_wait", "look"]), st.integers(0, 10**12)
    ),
    max_size=40,
)
CATEGORIES = st.sampled_from(["content", "request", "supply", "capacity", "unknown"])
CHANCES = st.floats(0, 1, exclude_max=True)


@given(STEPS, st.integers(0, 10**15))
@example([("begin_try", 5), ("begin_wait", 7)], 0)
def test_every_moment_is_booked_once(steps: list[tuple[str, int]], began: int):
    """SYN-3: wall = productive + stall + overhead to the nanosecond, whatever happens in whatever order."""
    clock, now = StallClock(began), began
    for name, passed in steps:
        now += passed
        if name == "begin_try":
            clock.begin_try(now)
        elif name in ("burned", "free"):
            clock.end_try(now, consumed=name == "burned")
        elif name == "begin_wait":
            clock.begin_wait(now)
        elif name == "end_wait":
            clock.end_wait(now)
        else:
            assert 0 <= clock.stall_ns(now) <= now - began
    times = clock.times(now)
    assert times.wall_ns == now - began
    assert times.wall_ns == times.productive_ns + times.stall_ns + times.overhead_ns
    assert min(times.productive_ns, times.stall_ns, times.overhead_ns) >= 0


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 10**9), st.integers(0, 10**9)), max_size=20))
def test_a_try_is_productive_and_a_429_is_stall(tries: list[tuple[bool, int, int]]):
    """SYN-3, SYN-4: the time of tries goes where they belong, the time between them is our own."""
    clock, now, expected = StallClock(0), 0, {True: 0, False: 0}
    for burned, before, lasted in tries:
        now += before
        clock.begin_try(now)
        now += lasted
        clock.end_try(now, consumed=burned)
        expected[burned] += lasted
    times = clock.times(now)
    assert (times.productive_ns, times.stall_ns) == (expected[True], expected[False])


def test_a_clock_that_steps_back_stands_still():
    """Times given never go back; one that does books nothing, and nothing is booked twice."""
    clock = StallClock(100)
    clock.begin_wait(200)
    clock.end_wait(150)
    assert clock.times(300).wall_ns == 200


@given(st.floats(0, 600), st.floats(0.1, 600), st.none() | st.floats(0, 1000))
def test_the_verdict_needs_both(stall_s: float, window_s: float, ago_s: float | None):
    """SYN-5: own stall time over the window and no success within it; it falls at the earliest when both hold."""
    last = None if ago_s is None else START - timedelta(seconds=ago_s)
    left_s = until_stalled_s(nanos(stall_s), window_s, START, last)
    since_s = None if last is None else (START - last).total_seconds()
    both = nanos(stall_s) >= nanos(window_s) and (since_s is None or since_s >= window_s)
    assert (left_s <= 0) is both
    if left_s > 0:
        later = START + timedelta(seconds=left_s + 0.001)
        assert until_stalled_s(nanos(stall_s + left_s + 0.001), window_s, later, last) <= 0


def failure(category: str, retryable: bool = True) -> Failure:
    """One of that category."""
    return Failure(category, "supply", retryable, "code", "words")


@given(st.lists(CATEGORIES, max_size=30), st.integers(1, 10), st.sampled_from([*Kind]), st.booleans())
def test_a_budget_is_spent_by_real_tries_alone(categories: list[str], most: int, kind: Kind, retry_unknown: bool):
    """SYN-2, SYN-3, SYN-4, ERR-1a: at most `most` real tries; a 429 is none; content and request end the call."""
    budget, sync = RetryBudget(most), SyncSettings(retry_unknown=retry_unknown)
    for category in categories:
        before = budget.used
        follows = budget.after(failure(category), kind, sync)
        assert budget.used - before == (category != "capacity")
        if category in ("content", "request"):
            assert follows is Next.FINAL
        elif category == "capacity":
            assert follows is Next.AGAIN
        elif category == "unknown" and kind in (Kind.IMAGE, Kind.SPEECH) and not retry_unknown:
            assert follows is Next.FINAL
        elif kind is not Kind.VIDEO:
            assert follows is (Next.AGAIN if budget.used < most else Next.EXHAUSTED)
        if follows is not Next.AGAIN:
            return


@given(CATEGORIES, st.booleans())
def test_after_the_first_token_nothing_is_tried(category: str, retryable: bool):
    """SYN-8: whatever it is, the stream ends."""
    assert RetryBudget(9).after(failure(category, retryable), Kind.CHAT, DEFAULTS, begun=True) is Next.FINAL


@given(CATEGORIES)
def test_what_cannot_be_retried_is_not(category: str):
    """SYN-2: a fault that says so ends the call, a supply's too."""
    if category != "unknown":
        assert RetryBudget(9).after(failure(category, False), Kind.CHAT, DEFAULTS) is Next.FINAL
    assert consumes(failure(category)) is (category != "capacity")


def held(supply: str) -> Fate:
    """Dropped, because this call leaves it alone."""
    return Fate(supply, "channel", "exact", "dropped", step="ATT-3a", reason="retry_after")


EVENTS = st.lists(
    st.tuples(st.sampled_from("abc"), st.booleans(), st.none() | st.integers(1, 60_000), CHANCES), max_size=9
)


@given(EVENTS, st.floats(0.1, 100))
def test_under_fail_fast_nobody_without_room_is_asked_again(
    events: list[tuple[str, bool, int | None, float]], left: float
):
    """SYN-4: who has answered 429 is held until the call is over; the only wait is for a Supply that has failed."""
    patience = Patience(SyncSettings())
    for supply, failed, retry_after, chance in events:
        if failed:
            fault = Fault.of("provider_error", retry_after_ms=retry_after)
            patience.failed(supply, (), fault, START, left, chance)
        else:
            patience.congested(supply, "words", retry_after, START, left, chance)
    end = START + timedelta(seconds=left)
    for hold in patience.holds.values():
        assert hold.failed or hold.until >= end
    look = patience.next_look([held("a")], START + timedelta(seconds=1), START, 0.5)
    assert look == min((hold.until for hold in patience.holds.values() if hold.failed), default=None)


@given(st.lists(st.none() | st.integers(1, 60_000), min_size=1, max_size=9), CHANCES)
def test_under_wait_a_retry_after_is_kept_to(told: list[int | None], chance: float):
    """SYN-4: the wait is what the provider said, or a jittered backoff that doubles up to its limit."""
    sync = SyncSettings(quota_full=QuotaFull.WAIT)
    patience = Patience(sync)
    for turn, retry_after in enumerate(told, 1):
        patience.congested("a", "words", retry_after, START, 60.0, chance)
        pause_s = (patience.holds["a"].until - START).total_seconds()
        if retry_after is not None:
            assert pause_s == pytest.approx(retry_after / 1000)
        else:
            longest = min(sync.backoff_max_s, sync.backoff_base_s * 2 ** (turn - 1))
            assert longest / 2 <= pause_s <= longest
    assert patience.next_look([held("a")], None, START, chance) is not None


@pytest.mark.parametrize("quota_full", [*QuotaFull])
@pytest.mark.parametrize("code", sorted(LASTING))
def test_what_lasts_is_not_waited_for(code: str, quota_full: QuotaFull):
    """SYN-2, HLT-8: neither policy waits for a key or an account, unless the provider said until when; whoever else may
    serve later is waited for as ever."""
    patience = Patience(SyncSettings(quota_full=quota_full))
    patience.failed("a", ["b"], Fault.of(code), START, 60.0, 0.5)
    alone = [held("a"), held("b"), held("c")._replace(step="SEL-4", reason="disabled")]
    assert patience.next_look(alone, START + timedelta(seconds=1), START, 0.5) is None
    patience.failed("c", (), Fault.of("provider_error"), START, 60.0, 0.5)
    look = patience.next_look([held("a"), held("b"), held("c")], None, START, 0.5)
    assert look == patience.holds["c"].until
    patience.failed("a", (), Fault.of(code, retry_after_ms=9000), START, 60.0, 0.5)
    assert patience.next_look([held("a")], None, START, 0.5) is not None
    assert patience.holds["a"].until == START + timedelta(seconds=9)


@given(st.lists(st.sets(st.sampled_from("abcdef"), min_size=1), min_size=1, max_size=60))
def test_round_robin_gives_each_survivor_its_turn(rounds: list[set[str]]):
    """SYN-9: whoever survives, the one that was chosen longest ago comes first; among equals all are equally often."""
    rota, last = Rota(), dict.fromkeys("abcdef", -1)
    for number, survivors in enumerate(rounds):
        ranks = ranks_of(Selector.ROUND_ROBIN, "abcdef", rota, {})
        chosen = min(sorted(survivors), key=lambda name: ranks[name])
        assert all(last[chosen] <= last[name] for name in survivors)
        rota.chosen(chosen)
        last[chosen] = number


def test_the_other_selectors():
    """SYN-9: the policy alone, or whoever has the fewest calls in flight."""
    flying = {"a": 3, "b": 0}
    assert ranks_of(Selector.HEALTH_AWARE, "ab", Rota(), flying) == NO_RANKS
    assert ranks_of(Selector.LEAST_INFLIGHT, "abc", Rota(), flying) == {"a": 3, "b": 0, "c": 0}


@given(st.floats(0.1, 1000), st.floats(-5, 1000), st.floats(0.1, 100), st.floats(0.1, 100), st.floats(10, 1000))
def test_settings_are_refused_with_their_reason(total: float, window: float, base: float, most: float, lease: float):
    """SYN-12: a call fits into a lease with the margin of a probe, the window is positive, the backoff can grow."""
    sync = SyncSettings(total, stall_window_s=window, backoff_base_s=base, backoff_max_s=most)
    found = dict(incoherences(sync, lease))
    assert ("total_timeout_s" in found) is (total + 5 > lease)
    assert ("stall_window_s" in found) is (window <= 0)
    assert ("backoff_max_s" in found) is (most < base)
    assert all(found.values())


def test_watchdogs_come_in_pairs():
    """SYN-12: both are set, or neither."""
    assert watchdog_incoherence(Timeouts()) == watchdog_incoherence(Timeouts(ttft_s=0, inter_token_s=0)) == ""
    assert watchdog_incoherence(Timeouts(ttft_s=0))
    assert watchdog_incoherence(Timeouts(inter_token_s=0))


def test_a_policy_is_read_with_its_defaults():
    """SYN-4, SYN-5: what the file does not say is 60 s, three attempts, 300 s, fail_fast."""
    assert sync_of(Policy("p", 1)) == DEFAULTS
    said = sync_of(Policy("p", 1, sync={"quota_full": "wait", "max_attempts": 1, "selector": "round_robin"}))
    assert (said.quota_full, said.max_attempts, said.selector) == ("wait", 1, "round_robin")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"settle_window_s": 2.0}, "settle_window_s and look_fresh_s"),
        ({"look_fresh_s": -0.1}, "settle_window_s and look_fresh_s"),
        ({"call_retention_s": 3599.0}, "call_retention_s must be twice POINTSMAN_CAPACITY_TTL_MAX_S and 3600 s"),
    ],
)
def test_a_process_refuses_settings_that_break_a_promise(changes: dict[str, float], reason: str):
    """SYN-12: named with the reason when they are put together."""
    with pytest.raises(ValueError, match=reason):
        Settings(database_url="memory:", **changes)


# --- Sizes ------------------------------------------------------------------------------------------------------------

TEXTS = st.text(max_size=80)
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {"role": st.just("user")},
        optional={
            "content": TEXTS
            | st.lists(
                st.fixed_dictionaries({"type": st.just("text"), "text": TEXTS})
                | st.just({"type": "image_url", "image_url": {"url": "https://x/y"}}),
                max_size=3,
            )
        },
    ),
    min_size=1,
    max_size=4,
)
CHATS = st.fixed_dictionaries(
    {"messages": MESSAGES},
    optional={
        "max_tokens": st.integers(1, 10**6),
        "n": st.integers(1, 4),
        "temperature": st.floats(0, 2),
        "tools": st.lists(st.fixed_dictionaries({"type": st.just("function")}), max_size=2),
        "response_format": st.sampled_from([{"type": "json_schema", "json_schema": {}}, {"type": "text"}]),
        "user": TEXTS,
    },
)
EMBEDDINGS = st.fixed_dictionaries(
    {"input": TEXTS.filter(bool) | st.lists(TEXTS, min_size=1, max_size=5)},
    optional={"dimensions": st.integers(1, 4096)},
)


@given(CHATS)
def test_a_digest_has_the_needs_of_its_request(given_: dict):
    """SEL-5, SEL-22: selection over a digest decides as over the whole input, and no word of it is kept."""
    digest = digest_of(Kind.CHAT, given_)
    assert facts_of(Kind.CHAT, normalised(Kind.CHAT, {}, digest)) == facts_of(
        Kind.CHAT, normalised(Kind.CHAT, {}, given_)
    )
    assert "role" not in repr(digest["messages"])
    assert (
        digest_of(
            Kind.CHAT,
            digest
            | {
                "messages": given_["messages"],
                "tools": given_.get("tools", []),
                "response_format": given_.get("response_format"),
            },
        )
        == digest
    )


@given(EMBEDDINGS)
def test_a_batch_is_no_need_of_a_call(given_: dict):
    """SYN-11: what a Supply takes at once splits a call, and refuses none."""
    facts = facts_of(Kind.EMBEDDING, digest_of(Kind.EMBEDDING, given_))
    assert "batch" not in facts.amounts
    assert misfits({"max_batch": 1}, facts) == []


@given(CHATS)
def test_what_is_reserved_covers_what_is_quoted_for(given_: dict):
    """CAP-1, COST-3: set aside are the tokens of the input and the most that may be made; a quote is a ceiling."""
    digest, supply = digest_of(Kind.CHAT, given_), chat_supply("a/talk")
    facts = facts_to_quote(Kind.CHAT, digest, supply)
    assert facts["input_tokens"] >= input_tokens(Kind.CHAT, digest)
    assert tokens_to_reserve(Kind.CHAT, digest, supply) == input_tokens(Kind.CHAT, digest) + facts["max_output_tokens"]


@given(st.integers(0, 10**7))
def test_a_stepped_figure_is_a_little_more(tokens: int):
    """COST-3: never less, by a step or a sixteenth at most, and the same for all of one step."""
    found = stepped(tokens)
    assert tokens <= found <= tokens + max(64, tokens // 8)
    assert stepped(found) == found


# --- Streams ----------------------------------------------------------------------------------------------------------


def test_a_piece_without_a_token_gives_nothing_away():
    """SYN-8: a role, an empty delta and usage alone are no token; words, tools and an end are."""
    heard = Heard(7)
    for piece in (
        b'{"choices":[{"delta":{"role":"assistant","content":""},"finish_reason":null}]}',
        b'{"choices":[{"delta":{}}]}',
        b'{"choices":[],"usage":{"total_tokens":3}}',
        b"{}",
        b"[]",
    ):
        assert heard.hear(piece) is False
    assert not heard.begun
    for piece in (
        b'{"choices":[{"delta":{"content":"Hi"}}]}',
        b'{"choices":[{"delta":{"reasoning_content":"hm"}}]}',
        b'{"choices":[{"delta":{"tool_calls":[{"index":0}]}}]}',
        b'{"choices":[{"delta":{},"finish_reason":"stop"}]}',
        b"not json",
    ):
        assert heard.hear(piece) is True
    assert heard.pieces == 5


@given(st.lists(TEXTS.filter(bool), max_size=30))
def test_an_estimate_is_a_token_a_piece_at_least(words: list[str]):
    """SYN-8: what a broken stream is settled by is never less than its pieces, nor than the bytes of its words say."""
    heard = Heard(11)
    for word in words:
        heard.hear(msgspec.json.encode({"choices": [{"delta": {"content": word}}]}))
    used = heard.estimate()
    assert used.input_tokens == 11
    assert used.output_tokens >= len(words)
    assert used.output_tokens * 4 >= sum(len(word.encode()) for word in words)
