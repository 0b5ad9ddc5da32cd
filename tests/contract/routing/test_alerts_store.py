"""The contract of `AlertStore`: one suite, every implementation."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from libs.faults.fault import Fault
from services.routing.domain.alert_kinds import KINDS as KINDS_OF_ALERTS
from services.routing.domain.measure import Measure
from services.routing.ports.alerts import AlertQuery
from tests.contract.routing.tasks_stores import KINDS, alert, at, opened, queued, write


@pytest.fixture(params=KINDS)
def address(request: pytest.FixtureRequest) -> str:
    """Where each implementation keeps its rows; a database of its own is only made for the one that needs it."""
    return request.getfixturevalue("pg_url") if request.param == "postgres" else ""


@pytest.fixture
async def store(address: str) -> AsyncIterator[Any]:
    """Each implementation in turn, empty."""
    async with opened(address) as made:
        yield made


async def test_an_open_alert_counts_instead_of_repeating(store: Any):
    """TIER-7: one alert for each dedupe key while it is open; raised again it counts and tells the newest words."""
    await store.raise_alerts([alert("1", "breaker_opened:a:1")])
    await store.raise_alerts([alert("2", "breaker_opened:a:1", message="Still open."), alert("3", "other")])
    page, _ = await store.alerts(AlertQuery())
    assert {(item.id, item.count, item.message) for item in page} == {
        ("1", 2, "Still open."),
        ("3", 1, "The circuit is open."),
    }


async def test_an_open_alert_that_counts_causes_takes_each_once(store: Any):
    """OPS-6: what many processes see is one matter; another cause counts, the same one changes nothing."""
    await store.raise_alerts([alert("1", "k", once_a_cause=True)])
    await store.raise_alerts([alert("2", "k", once_a_cause=True, message="Seen by another.")])
    assert [(item.id, item.count, item.message) for item in (await store.alerts(AlertQuery()))[0]] == [
        ("1", 1, "The circuit is open."),
    ]  # fmt: skip
    await store.raise_alerts([alert("3", "k", once_a_cause=True, cause="epoch 2", message="Open again.")])
    found, _ = await store.alerts(AlertQuery())
    assert found == (alert("1", "k", cause="epoch 2", message="Open again.", count=2),)
    await store.acknowledge("1", at(5))
    await store.raise_alerts([alert("4", "k", once_a_cause=True, cause="epoch 2")])
    assert len((await store.alerts(AlertQuery(open_only=True)))[0]) == 1


async def test_alerts_are_found_newest_first(store: Any):
    """TIER-7: those of one kind, by kind and subject, in pages."""
    await store.raise_alerts([alert(str(n), f"k{n}", created=n, subject="ab"[n % 2]) for n in range(5)])
    page, token = await store.alerts(AlertQuery(kind="breaker_opened", page_size=3))
    rest, end = await store.alerts(AlertQuery(kind="breaker_opened", page_size=3, page_token=token))
    assert [item.id for item in (*page, *rest)] == ["4", "3", "2", "1", "0"]
    assert end == ""
    assert [item.id for item in (await store.alerts(AlertQuery(subject="b")))[0]] == ["3", "1"]
    assert (await store.alerts(AlertQuery(kind="cost_anomaly")))[0] == ()


async def test_an_alert_about_a_task_is_written_with_it(store: Any):
    """TIER-7: in the same transaction, so that neither is there without the other."""
    await store.add(queued("t1"))
    task = await store.claim_one("t1", "w", queued("t1").created_at, queued("t1").created_at)
    await store.save(write(task, task, alerts=(alert("1", "k"),)))
    assert [item.id for item in (await store.alerts(AlertQuery()))[0]] == ["1"]


async def test_an_alert_that_was_seen_makes_room_for_a_new_one(store: Any):
    """OPS-6: the first acknowledgement stands; what goes on is a new alert, and both are found."""
    await store.raise_alerts([alert("1", "k"), alert("2", "other", created=1)])
    seen = await store.acknowledge("1", at(5))
    assert seen.acknowledged_at == at(5)
    assert (await store.acknowledge("1", at(9))).acknowledged_at == at(5)
    assert await store.acknowledge("nobody", at(9)) is None
    await store.raise_alerts([alert("3", "k", created=2), alert("4", "other")])
    found, _ = await store.alerts(AlertQuery())
    assert [(item.id, item.count) for item in found] == [("3", 1), ("2", 2), ("1", 1)]
    still, token = await store.alerts(AlertQuery(open_only=True, page_size=1))
    rest, _ = await store.alerts(AlertQuery(open_only=True, page_token=token))
    assert [item.id for item in (*still, *rest)] == ["3", "2"]


async def test_alerts_are_read_by_their_consequence(store: Any):
    """SLO-2, OPS-6: what cannot be taken back before what is merely dear, however old it is; of one kind the newest
    first; what an operator has seen after all of it. In pages of any size each is met once."""
    kinds = (*reversed(KINDS_OF_ALERTS), "news")
    await store.raise_alerts([alert(kind, kind, created=n, kind=kind) for n, kind in enumerate(kinds)])
    await store.raise_alerts([alert("older", "older", created=-1, kind="cost_drift")])
    await store.raise_alerts([alert("seen", "seen", kind="rights_expired")])
    await store.acknowledge("seen", at(99))
    expected = [*KINDS_OF_ALERTS, "news", "seen"]
    expected.insert(expected.index("cost_drift") + 1, "older")
    for size in (1, 4, 100):
        met: list[str] = []
        token = ""
        while not met or token:
            page, token = await store.alerts(AlertQuery(page_size=size, page_token=token))
            met += [item.id for item in page]
        assert met == expected
    page, _ = await store.alerts(AlertQuery(open_only=True, page_size=2))
    assert [item.id for item in page] == ["rights_expired", "facts_in_conflict"]


async def test_an_open_alert_goes_on_measuring(store: Any):
    """SLO-2: raised again it keeps what it measured and adds the newest; whoever measures nothing leaves it; once it is
    seen, the next one begins anew."""
    first, next_one = (Measure("cost", "CNY", 1.0, (value,)) for value in (1.5, 1.75))
    await store.raise_alerts([alert("1", "k", measure=first), alert("2", "bare")])
    await store.raise_alerts([alert("3", "k", measure=next_one), alert("4", "bare")])
    await store.raise_alerts([alert("5", "k")])
    found = {item.id: item.measure for item in (await store.alerts(AlertQuery()))[0]}
    assert found == {"1": Measure("cost", "CNY", 1.0, (1.5, 1.75)), "2": None}
    await store.raise_alerts([alert("6", "bare", measure=first)])
    await store.acknowledge("1", at(5))
    await store.raise_alerts([alert("7", "k", measure=next_one)])
    found = {item.id: item.measure for item in (await store.alerts(AlertQuery()))[0]}
    assert (found["2"], found["7"]) == (first, next_one)


async def test_a_token_of_another_list_is_refused(store: Any):
    """EDG-2: a page token that this list never gave."""
    with pytest.raises(Fault, match="page token"):
        await store.alerts(AlertQuery(page_token="WyIyMDI2Il0="))
