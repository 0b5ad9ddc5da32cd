"""Synchronous calls with everything real below the edge: peers over loopback, PostgreSQL, sockets, the studio."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import grpc
import pytest

from libs.faults.fault import Fault
from libs.kernel.money import Money
from libs.rpc.faulting import faults_from_rpc
from libs.rpc.values import money_from_proto
from libs.store.database import Database
from pointsman.routing.v1 import call_pb2, catalog_service_pb2
from pointsman.routing.v1 import routing_service_pb2 as pb
from services.routing.app.calls.end_orphans import LAG_S
from services.routing.domain.rounds import RoundOutcome, SelectionRound
from services.routing.ports.calls import Intent
from services.routing.store.calls_postgres import PostgresCalls
from tests.contract.routing.test_calls_store import call, tried
from tests.integration.routing.stack import CALL_S, Stack, stack_over
from tests.support.waiting import eventually_async
from tests.support.worlds import START

HELLO = {"messages": [{"role": "user", "content": "Good morning, how are you?"}], "max_tokens": 60}
ACCOUNTS = ("lumen", "moss")


def catalog_yaml(keys: Path, stack: Stack) -> str:
    """One chat model over two accounts, dearer first, with gates of every sort."""
    channels, supplies, bindings = "", "", ""
    for place, account in enumerate(ACCOUNTS):
        (keys / account).write_text(stack.studio.key(account))
        channels += (
            f"  - {{id: {account}, adapter: openai, base_url: '{stack.studio.base_url(account)}',"
            f" secret: 'file:{keys}/{account}', timeouts: {{submit_s: 10, ttft_s: 5, inter_token_s: 2}}}}\n"
        )
        supplies += (
            f"  - {{id: {account}/talk, channel: {account}, upstream_model: gpt-4o-mini, kind: chat,\n"
            "     limits: {concurrency: 6, rpm: 1000, tpm: 100000}, prices: [talk], evidence: waived,"
            " evidence_reason: test}\n"
        )
        bindings += f"      - {{supply: {account}/talk, tier: exact, priority: {10 - place}}}\n"
    return (
        f"version: 1\ncurrency: CNY\nfx: {{USD: '7.00'}}\nchannels:\n{channels}supplies:\n{supplies}"
        "prices:\n  - {id: talk, version: 1, currency: USD, billing_mode: per_token, input_per_million: '150',"
        " output_per_million: '600'}\n"
        "policies:\n  - {id: quick, order: manual_priority,"
        " sync: {quota_full: wait, total_timeout_s: 60, backoff_base_s: 0.05, backoff_max_s: 0.2}}\n"
        "models:\n  - id: talk\n    kind: chat\n    policy: quick\n    enabled: true\n    published: true\n"
        f"    bindings:\n{bindings}"
    )


@pytest.fixture
async def talk(pg_url: str, tmp_path: Path) -> AsyncIterator[Stack]:
    """Everything running, with the model on offer."""
    async with stack_over(pg_url, tmp_path, ROUTING_ORPHAN_INTERVAL_S="0.3") as stack:
        asked = catalog_service_pb2.ApplyRequest(catalog_yaml=catalog_yaml(stack.folder, stack))
        async with faults_from_rpc():
            answer = await stack.catalog.Apply(asked, timeout=CALL_S)
        assert [item.published for item in answer.publications] == [True], answer
        yield stack


def asked(call_id: str) -> pb.InvokeRequest:
    """What a caller sends."""
    return pb.InvokeRequest(call_id=call_id, tenant="t", model="talk", input=json.dumps(HELLO).encode())


async def record(stack: Stack, call_id: str) -> call_pb2.Call:
    """The call once its end is on record."""
    found: list[call_pb2.Call] = []

    async def ended() -> bool:
        try:
            answer = await stack.routing.GetCall(pb.GetCallRequest(call_id=call_id), timeout=CALL_S)
        except grpc.RpcError:
            return False
        found.append(answer.call)
        return answer.call.state != call_pb2.CALL_STATE_RUNNING

    await eventually_async(ended)
    return found[-1]


async def posts(stack: Stack) -> int:
    """Requests that reached the accounts, whatever became of them."""
    return (await stack.lab("GET", "/ledger"))["posts"]["count"]


async def test_a_call_switches_and_is_priced_by_what_it_used(talk: Stack) -> None:
    """SYN-1, SYN-11, CAP-6, COST-3: one failure, one switch, two requests; usage priced by its rule; slots are free."""
    await talk.script({"status": 500}, account="lumen")
    answer = await talk.routing.Invoke(asked("c1"), timeout=CALL_S)
    assert await posts(talk) == 2
    told = await record(talk, "c1")
    assert [(item.supply_id, item.state) for item in told.attempts] == [
        ("lumen/talk", "failed"),
        ("moss/talk", "succeeded"),
    ]
    usage = told.usage
    dollars = (Decimal(150) * usage.input_tokens + Decimal(600) * usage.output_tokens) / 1_000_000
    assert money_from_proto(answer.call.cost) == Money("CNY", dollars * 7).rounded()
    assert [item.chosen_supply_id for item in told.selections] == ["lumen/talk", "moss/talk"]

    async def free() -> bool:
        levels = await talk.capacity()
        return levels["moss/talk"].in_use == 0 and levels["moss/talk"].tokens_used == (
            usage.input_tokens + usage.output_tokens
        )

    await eventually_async(free)

    async def heard() -> bool:
        health = await talk.health()
        return (health["lumen/talk"].samples, health["moss/talk"].samples) == (1, 1)

    await eventually_async(heard)


async def test_the_callers_short_time_is_no_fault_of_the_provider(talk: Stack) -> None:
    """HLT-5 SYN-3: a call whose own time ends first is waited for to its end, and health hears nothing of it."""
    await talk.script({"hang_s": 30}, account="lumen")
    hurried = asked("c1")
    hurried.options.timeout.FromMilliseconds(900)
    with pytest.raises(Fault):
        async with faults_from_rpc():
            await talk.routing.Invoke(hurried, timeout=CALL_S)
    told = await record(talk, "c1")
    [tried] = told.attempts
    assert (tried.state, tried.possible_charge) == ("unknown", True)

    async def free() -> bool:
        return (await talk.capacity())["lumen/talk"].in_use == 0

    await eventually_async(free)
    await talk.routing.Invoke(asked("c2"), timeout=CALL_S)

    async def heard() -> bool:
        return (await talk.health())["lumen/talk"].samples > 0

    await eventually_async(heard)
    subject = (await talk.health())["lumen/talk"]
    assert (subject.samples, subject.success_rate) == (1, 1.0)


async def listen(stack: Stack, pieces: list[bytes]) -> None:
    """One streamed call to its end."""
    async with faults_from_rpc():
        async for piece in stack.routing.InvokeStream(pb.InvokeStreamRequest(request=asked("c1")), timeout=CALL_S):
            pieces.append(piece.chunk)


async def test_a_stream_that_is_cut_ends_honestly(talk: Stack) -> None:
    """SYN-8, COST-12: after the first token one request is all there is; a possible charge by what had come."""
    await talk.script({"cut_after": 3}, account="lumen")
    pieces: list[bytes] = []
    with pytest.raises(Fault) as caught:
        await listen(talk, pieces)
    assert caught.value.code == "stream_interrupted"
    assert pieces
    assert await posts(talk) == 1
    told = await record(talk, "c1")
    assert (told.attempts[0].state, told.attempts[0].possible_charge) == ("unknown", True)
    assert told.attempts[0].cost.nanos > 0


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_refusal_that_the_model_has_said_is_paid_for(talk: Stack, streamed: bool) -> None:
    """SYN-8, COST-9: it was asked once, and what it read and said for its refusal is on the record."""
    await talk.script({"refusal": "I cannot help with this one."}, account="lumen")
    with pytest.raises(Fault) as caught:
        async with faults_from_rpc():
            await (listen(talk, []) if streamed else talk.routing.Invoke(asked("c1"), timeout=CALL_S))
    assert (caught.value.code, await posts(talk)) == ("content_rejected", 1)
    cost = money_from_proto((await record(talk, "c1")).attempts[0].cost)
    assert cost is not None
    used = (await talk.submissions())[-1]["usage"]
    dollars = (Decimal(150) * used["prompt_tokens"] + Decimal(600) * used["completion_tokens"]) / 1_000_000
    whole = Money("CNY", dollars * 7).rounded().amount
    assert whole / 2 < cost.amount <= whole if streamed else cost.amount == whole  # a stream is ended before it tells


async def test_many_at_once_keep_to_the_slots(talk: Stack) -> None:
    """CAP-1, SYN-2, SYN-4: forty calls over twelve slots are all served, each by one request, and nothing is leaked."""
    answers = await asyncio.gather(*(talk.routing.Invoke(asked(f"c{n}"), timeout=CALL_S) for n in range(40)))
    assert len(answers) == 40
    assert await posts(talk) == 40
    for name in ("c0", "c39"):
        assert (await record(talk, name)).state == call_pb2.CALL_STATE_SUCCEEDED

    async def free() -> bool:
        levels = await talk.capacity()
        return all(levels[f"{account}/talk"].in_use == 0 for account in ACCOUNTS)

    await eventually_async(free)


async def test_a_caller_who_leaves_takes_the_stream_along(talk: Stack) -> None:
    """SYN-8, CAP-8: the provider's stream ends, the slot comes back long before its time to live."""
    await talk.script({"stall_after": 2, "stall_s": 60}, account="lumen")
    stream = talk.routing.InvokeStream(pb.InvokeStreamRequest(request=asked("c1")), timeout=CALL_S)
    async for _ in stream:
        break
    stream.cancel()
    told = await record(talk, "c1")
    assert (told.state, told.attempts[0].state) == (call_pb2.CALL_STATE_ABANDONED, "abandoned")

    async def free() -> bool:
        return (await talk.capacity())["lumen/talk"].in_use == 0

    await eventually_async(free)


async def test_the_call_of_a_dead_process_is_closed(talk: Stack) -> None:
    """ERR-1a, COST-12: whoever runs now finds it, closes it as unknown, and tells an operator; nothing is sent."""
    database = Database(talk.env["POINTSMAN_DATABASE_URL"], schema="routing")
    left = PostgresCalls(database)
    sent = tried("dead", sent_at=START)
    now = datetime.now(UTC)
    chosen = SelectionRound("dead", 1, START, RoundOutcome.RESERVED, "{}")
    overdue = now - timedelta(seconds=LAG_S - 3)  # what is older than the lag has been looked at by now
    await left.intend(Intent(call("dead", sent, created_at=START), chosen, overdue))

    async def closed() -> bool:
        found = await left.get("dead")
        return found is not None and found[0].tries[-1].state == "unknown"

    await eventually_async(closed)
    assert [item.subject for item in await talk.alerts("cost_anomaly")] == [sent.id]
    assert await posts(talk) == 0
    await left.close()
    await database.close()
