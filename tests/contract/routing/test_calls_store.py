"""The contract of `CallStore` and `AnswerStore`, tried on both implementations."""

import asyncio
import base64
from collections.abc import AsyncIterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from msgspec import structs
from sqlalchemy import text
from sqlalchemy.dialects import postgresql

from libs.faults.fault import Fault
from libs.kernel.money import Money
from libs.store.database import Database
from libs.store.migrations import migrate
from services.routing.domain.calls.call import Call, CallState, Changed, Try, TryState
from services.routing.domain.calls.stall_clock import Times
from services.routing.domain.rounds import RoundOutcome, SelectionRound
from services.routing.domain.task import Artifact, Failure
from services.routing.domain.usage import Usage
from services.routing.ports.calls import CallQuery, Intent
from services.routing.store.calls_memory import MemoryCalls
from services.routing.store.calls_postgres import PostgresCalls, page_of
from tests.contract.routing.tasks_stores import KINDS, SCHEMA, VERSIONS, at

DIALECT = postgresql.dialect()


@pytest.fixture(params=KINDS)
def address(request: pytest.FixtureRequest) -> str:
    """Where each implementation keeps its rows."""
    return request.getfixturevalue("pg_url") if request.param == "postgres" else ""


@pytest.fixture
async def store(address: str) -> AsyncIterator[Any]:
    """Each implementation in turn, empty."""
    if not address:
        yield MemoryCalls()
        return
    await migrate(address, schema=SCHEMA, versions=VERSIONS)
    database = Database(address, schema=SCHEMA)
    made = PostgresCalls(database)
    yield made
    await made.close()
    await database.close()


def tried(call_id: str, number: int = 1, **changes: Any) -> Try:
    """A try with a value in every field."""
    made = Try(
        id=f"{call_id}-{number}",
        number=number,
        supply="a/talk",
        channel="a",
        state=TryState.SENT,
        quote=Money("CNY", Decimal("0.000123456")),
        round=number,
        sent_at=at(number),
        channel_epoch=2,
        supply_epoch=3,
        price_rule="tokens",
        price_version=4,
        reserved_tokens=120,
    )
    return structs.replace(made, **changes)


def call(call_id: str, *tries: Try, **changes: Any) -> Call:
    """A running call."""
    made = Call(call_id, "t", "talk", "chat", at(0), "CNY", 7, session_id="s", parent_call_id="p", tries=tries)
    return structs.replace(made, **changes)


def chosen(call_id: str, number: int = 1, **changes: Any) -> SelectionRound:
    """A round."""
    return structs.replace(
        SelectionRound(call_id, number, at(number), RoundOutcome.RESERVED, f'{{"n":{number}}}'), **changes
    )


def intent(call_id: str, number: int = 1, overdue: float = 100) -> Intent:
    """The intent of that try, after those before it."""
    before = tuple(tried(call_id, earlier, state=TryState.FAILED) for earlier in range(1, number))
    return Intent(call(call_id, *before, tried(call_id, number)), chosen(call_id, number), at(overdue))


def ended(call_id: str, finished: float = 50, **changes: Any) -> Call:
    """A call that succeeded, with a value in every field."""
    last = tried(
        call_id,
        state=TryState.SUCCEEDED,
        cost=Money("CNY", Decimal("0.1")),
        latency_ns=1_500,
        first_token_ns=700,
        usage=Usage(1, 2, 3, 4, 5, 6, 7, 8, Decimal("9.5"), 10, 11, 12, 13, 14),
        provider_request_id="r",
    )
    failure = Failure("supply", "supply", True, "provider_error", "nul \0 and text", 5, "p", "c", "m")
    made = call(
        call_id,
        tried(call_id, state=TryState.UNKNOWN, failure=failure, possible_charge=True),
        structs.replace(last, number=2),
        state=CallState.SUCCEEDED,
        supply="a/talk",
        changed=Changed("r", "full", "less", ("x",)),
        times=Times(10, 5, 3, 2),
        finished_at=at(finished),
        artifacts=(Artifact("a" * 64, "image/png", 5),),
        usage=last.usage,
    )
    return structs.replace(made, **changes)


async def test_a_call_comes_back_as_it_was_kept(store: Any):
    """SYN-11: every field of a call, its tries and rounds in their order; before its end as its last intent says."""
    assert await store.get("c") is None
    await store.intend(intent("c"))
    await store.intend(intent("c", 3))
    running = await store.get("c")
    assert running == (intent("c", 3).call, (chosen("c", 1), chosen("c", 3)))
    between = chosen("c", 2, outcome=RoundOutcome.REFUSED, note="supply a/talk requests 5 of 5")
    assert await store.end(ended("c"), (between,))
    assert await store.get("c") == (ended("c"), (chosen("c", 1), between, chosen("c", 3)))


async def test_a_try_is_intended_once(store: Any):
    """ATT-5: a second intent of one try, and any of a call that has ended, is refused; of two at once one is."""
    await store.intend(intent("c"))
    for again in (intent("c"), intent("d")):
        if again.call.id == "d":
            await store.end(ended("d"), ())
        with pytest.raises(Fault) as caught:
            await store.intend(again)
        assert caught.value.code == "already_exists"
    both = await asyncio.gather(*(store.intend(intent("e")) for _ in range(2)), return_exceptions=True)
    assert sorted(type(item).__name__ for item in both) == ["Fault", "NoneType"]


async def test_a_call_ends_once(store: Any):
    """The first end stays."""
    assert await store.end(ended("c"), ())
    assert not await store.end(ended("c", state=CallState.FAILED), ())
    assert (await store.get("c"))[0].state is CallState.SUCCEEDED


async def found(store: Any, size: int = 9, **query: Any) -> list[str]:
    """The ids of a page and of all pages behind it, each page's last one marked."""
    token, told = "", []
    while True:
        page, token = await store.find(CallQuery(**query), token, size)
        told += [item.id for item in page]
        if not token:
            return told
        told[-1] += "|"


async def test_calls_are_listed_by_their_end(store: Any):
    """SYN-11 AUTH-1: those that have ended, the newest end first, of one tenant or of all, by model, end and time."""
    assert await found(store) == []
    await store.intend(intent("under-way"))
    for number, tenant in enumerate(("t", "u", "t", "t", "t")):
        state = CallState.FAILED if number == 3 else CallState.SUCCEEDED
        session = "talk" if number < 3 else ""
        finished = 50 if number == 4 else 50 + number  # the last one shares its time with the first
        await store.end(ended(f"c{number}", finished, tenant=tenant, state=state, session_id=session), ())
    await store.end(ended("other", 60, model="draw", session_id=""), ())
    assert await found(store) == ["other", "c3", "c2", "c1", "c4", "c0"]
    assert await found(store, tenant="t", size=2) == ["other", "c3|", "c2", "c4|", "c0"]
    assert await found(store, tenant="t", model="talk", size=1) == ["c3|", "c2|", "c4|", "c0"]
    assert await found(store, tenant="t", states=(CallState.FAILED,)) == ["c3"]
    assert await found(store, states=(CallState.FAILED, CallState.ABANDONED)) == ["c3"]
    assert await found(store, tenant="t", session_id="talk") == ["c2", "c0"]
    assert await found(store, session_id="talk", size=2) == ["c2", "c1|", "c0"]
    assert await found(store, since=at(51), until=at(53)) == ["c2", "c1"]
    assert await found(store, tenant="nobody") == []
    page, _ = await store.find(CallQuery(model="draw"), "", 9)
    assert page == (ended("other", 60, model="draw", session_id=""),)


async def test_pages_begin_where_a_page_ended(store: Any):
    """EDG-3: what no page gave is refused, whatever it holds."""
    await store.end(ended("c"), ())
    for key in ('["2026-01-01T00:00:00", "c"]', '["2026-01-01T00:00:00+00:00", "\\u0000"]', '["soon", "c"]', "5", "no"):
        with pytest.raises(Fault) as caught:
            await store.find(CallQuery(), base64.urlsafe_b64encode(key.encode()).decode(), 9)
        assert caught.value.code == "malformed_request"


MANY_CALLS = """
INSERT INTO calls SELECT made.* FROM (SELECT to_jsonb(c) AS pattern FROM calls c) p, generate_series(1, 5000) n,
LATERAL jsonb_populate_record(NULL::calls, pattern || jsonb_build_object(
  'id', 'c' || n, 'tenant', 't' || n % 50, 'model', 'm' || n % 3, 'finished_at', now() - n * interval '1 second',
  'session', CASE WHEN n % 9 = 0 THEN 's' || n % 7 ELSE '' END
)) made
"""


async def test_no_list_of_calls_reads_them_all(pg_url: str):
    """PRF-5: a page of a tenant, of everybody and of a conversation goes by an index."""
    await migrate(pg_url, schema=SCHEMA, versions=VERSIONS)
    database = Database(pg_url, schema=SCHEMA)
    store = PostgresCalls(database)
    await store.end(ended("c", session_id=""), ())
    async with database.unit() as tx:
        for change in (MANY_CALLS, "ANALYZE calls"):
            await tx.execute(text(change))
        for query, index in (
            (CallQuery(), "calls_by_end"),
            (CallQuery(tenant="t1"), "calls_by_tenant"),
            (CallQuery(tenant="t1", states=(CallState.FAILED,), since=at(0)), "calls_by_tenant"),
            (CallQuery(tenant="t1", session_id="s1"), "calls_by_session"),
        ):
            asked = page_of(query, "", 20).compile(dialect=DIALECT, compile_kwargs={"literal_binds": True})
            plan = "\n".join((await tx.exec_driver_sql(f"EXPLAIN {asked}")).scalars())
            assert index in plan, plan
            assert "Seq Scan" not in plan, plan
    await store.close()
    await database.close()


async def test_those_that_have_ended_are_told_from_others(store: Any):
    """COST-11: whoever settles what was forgotten asks about many at once; what is under way or unknown is left out."""
    for name in ("b", "a", "under-way"):
        await store.intend(intent(name))
    for name in ("b", "a"):
        assert await store.end(ended(name), ())
    assert await store.ended(["under-way", "b", "unknown", "a"]) == (ended("a"), ended("b"))
    assert await store.ended([]) == ()


async def test_many_are_kept_at_once(store: Any):
    """What comes in one turn is kept whole, each for itself."""
    await asyncio.gather(*(store.intend(intent(f"c{number}")) for number in range(50)))
    await asyncio.gather(*(store.end(ended(f"c{number}"), ()) for number in range(50)))
    assert [(await store.get(f"c{number}"))[0] for number in range(50)] == [ended(f"c{number}") for number in range(50)]


async def test_overdue_calls_are_found_by_their_last_try(store: Any):
    """ATT-7: only calls that have not ended, by the time of their last try, oldest first, in pages."""
    await store.intend(intent("ended", overdue=10))
    await store.end(ended("ended"), ())
    await store.intend(intent("twice", 1, overdue=10))
    await store.intend(intent("twice", 2, overdue=30))
    await store.intend(intent("once", overdue=20))
    await store.intend(intent("later", overdue=200))
    found = await store.overdue(at(0), at(100), 10)
    assert [item.id for item in found] == ["once", "twice"]
    assert len(found[1].tries) == 2
    assert [item.id for item in await store.overdue(at(0), at(100), 1)] == ["once"]
    assert [item.id for item in await store.overdue(at(25), at(100), 10)] == ["twice"]


async def test_the_last_success_of_a_model_is_known(store: Any):
    """SYN-5: of that model, whoever served it, since that moment; a failure is none."""
    await store.end(ended("a", 10), ())
    await store.end(ended("b", 20), ())
    await store.end(ended("c", 30, state=CallState.FAILED), ())
    await store.end(ended("d", 40, model="other"), ())
    assert await store.last_success("talk", at(0)) == at(20)
    assert await store.last_success("talk", at(25)) is None


async def test_old_calls_are_forgotten_a_few_at_a_time(store: Any):
    """What ended before the moment goes, its tries too; what is running or younger stays."""
    for number in range(3):
        await store.intend(intent(f"old{number}"))
        await store.end(ended(f"old{number}", number), ())
    await store.intend(intent("running"))
    await store.end(ended("young", 100), ())
    await store.keep_answer("t", "stale", b"x", at(5))
    assert await store.forget(at(50), at(60), 2) == 3
    assert await store.forget(at(50), at(60), 2) == 1
    assert await store.forget(at(50), at(60), 2) == 0
    assert [await store.get(f"old{number}") for number in range(3)] == [None] * 3
    assert await store.get("running") is not None
    assert await store.get("young") is not None


async def test_answers_are_kept_by_tenant_and_for_their_time(store: Any):
    """SYN-10: nobody is given another tenant's answer, and none after its time; a newer one takes its place."""
    await store.keep_answer("t", "k", b"one\0", at(10))
    assert await store.answer("t", "k", at(9)) == b"one\0"
    assert await store.answer("t", "k", at(10)) is None
    assert await store.answer("u", "k", at(9)) is None
    await store.keep_answer("t", "k", b"two", at(20) + timedelta(microseconds=1))
    assert await store.answer("t", "k", at(20)) == b"two"


async def test_calls_are_found_by_the_hold_that_paid_for_them(store: Any):
    """COST-9, COST-12: those that have ended, failed ones and those of several tries too; nothing as long as one of
    them has only an intent, and nothing of another Hold or of before it."""
    paid = {"hold": "calls:1"}
    for name, hold in (("a", "calls:1"), ("b", "calls:1"), ("c", "calls:2"), ("d", "")):
        sent = intent(name)
        await store.intend(structs.replace(sent, call=structs.replace(sent.call, hold=hold)))
    again = intent("a", 2)
    await store.intend(structs.replace(again, call=structs.replace(again.call, **paid)))
    await store.end(ended("a", hold="calls:1"), ())
    await store.end(ended("e", 10, hold="calls:1"), ())
    assert await store.paid_by("calls:1", at(0)) is None
    failed = ended("b", 60, hold="calls:1", state=CallState.FAILED)
    await store.end(failed, ())
    found = await store.paid_by("calls:1", at(20))
    assert {call.id: call for call in found} == {"a": ended("a", hold="calls:1"), "b": failed}
    assert await store.paid_by("calls:2", at(0)) is None
    assert await store.paid_by("calls:3", at(0)) == ()
