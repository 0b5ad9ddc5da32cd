"""`RoutingService.WhatIf` over loopback, its history made by real dispatch and its prices by the real cost_quote.

The market, for a clip of d seconds: `a` costs 1.00 x d and succeeds in 80 of 100 cases for sure, `b` costs 1.20 x d and
succeeds in 95, `dear` costs 4.00 x d. So `stable_first` takes `b` and `cost_first` takes `a`; `dear` is never taken.
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import yaml

from libs.faults.fault import Fault
from libs.rpc.values import time_to_proto
from pointsman.routing.v1 import replay_pb2
from pointsman.routing.v1 import routing_service_pb2 as pb
from services.routing.domain.decision import HealthView
from services.routing.ports import Refused
from tests.contract.routing.replay_house import House, house, keep_round, price
from tests.support.worlds import START
from tests.unit.routing.dispatch_offers import catalog, supply

COST_FIRST = "order: cost_first\n"
SUPPLIES = ("a/clip", "b/clip", "dear/clip")


@pytest.fixture
async def home() -> AsyncIterator[House]:
    """The market at rest."""
    bound = [supply(name, slots=0, prices=(name.partition("/")[0],)) for name in SUPPLIES]
    prices = {key: price(key, rate) for key, rate in (("a", "1.00"), ("b", "1.20"), ("dear", "4.00"))}
    async with house(catalog(*bound, prices=prices)) as made:
        made.play.health.supplies = {
            "a/clip": HealthView(success_rate=0.9, success_rate_low=0.8, samples=100),
            "b/clip": HealthView(success_rate=0.98, success_rate_low=0.95, samples=100),
        }
        yield made


def asked(**fields: Any) -> pb.WhatIfRequest:
    """About everything since the start."""
    return pb.WhatIfRequest(**{"since_time": time_to_proto(START), **fields})


async def report(home: House, **fields: Any) -> replay_pb2.WhatIfReport:
    """The report of one page that holds everything."""
    home.play.clock.advance(1)
    return (await home.call("WhatIf", asked(page_size=1000, **fields))).report


def money(totals: replay_pb2.DecisionTotals) -> dict[str, float]:
    """Costs by currency."""
    return {item.currency_code: round(item.units + item.nanos / 1e9, 6) for item in totals.expected_costs}


async def served(home: House, *task_ids: str, **changes: Any) -> None:
    """Those Tasks, five seconds each, sent to where they go."""
    for task_id in task_ids:
        await home.play.submit(task_id, **changes)
    await home.play.work()


async def test_a_long_history_replays_and_moves_as_computed_by_hand(home: House) -> None:
    """SEL-22, SEL-23: 240 tasks of 5 and 10 s. Every round replays. Under cost_first all move from b to a: cost
    120 x 6 + 120 x 12 = 2160 becomes 120 x 5 + 120 x 10 = 1800, successes 240 x 0.95 = 228 become 192."""
    names = [f"t{number:03}" for number in range(240)]
    for place, name in enumerate(names):
        await home.play.submit(name, input={"prompt": name, "duration_s": 10.0 if place % 2 else 5})
    await home.play.work()
    for name in names:
        assert [item.identical for item in await home.rounds(name)] == [True]
    found = await report(home, policy_yaml=COST_FIRST)
    assert (found.decided_count, found.changed_count, found.untouched_count) == (240, 240, 0)
    assert [(item.model, item.from_choice, item.to_choice, item.count) for item in found.moves] == [
        ("clip", "b/clip", "a/clip", 240)
    ]
    assert (money(found.before), money(found.after)) == ({"CNY": 2160.0}, {"CNY": 1800.0})
    assert (found.before.expected_successes, found.after.expected_successes) == pytest.approx((228.0, 192.0))
    assert (found.before.chosen_count, found.shared_after.chosen_count) == (240, 240)
    assert len(found.examples) == 20
    example = found.examples[0]
    assert (example.task_id, example.round, example.quote_before.units, example.quote_after.units) == ("t000", 1, 6, 5)
    assert "cost_first" in example.reason
    same = await report(home, policy_yaml="order: stable_first\n")
    assert (same.decided_count, same.changed_count) == (240, 0)
    assert same.before == same.after


async def test_every_sort_of_round_replays(home: House) -> None:
    """SEL-22: rounds that waited, failed, were refused, came after a switch or saw circuits and full supplies."""
    play = home.play
    play.provider.answers["b/clip"] = [Fault.of("provider_error", "500"), Fault.of("rate_limited", "429")]
    play.capacity.refusals = [Refused("supply b/clip", "concurrency", 5, 5)] * 2
    await served(home, *(f"x{number}" for number in range(8)))
    open_until = HealthView(state="circuit_open", epoch=1, limit=0, cooldown_until=play.clock.now())
    play.health.supplies = {"a/clip": HealthView(state="recovering", limit=2), "b/clip": open_until}
    await served(home, *(f"y{number}" for number in range(8)), input={"prompt": "p", "duration_s": 14.5})
    play.health.channels = {"a": open_until, "b": open_until, "dear": open_until}
    await served(home, *(f"z{number}" for number in range(4)))
    await served(home, "long", input={"prompt": "p", "duration_s": 99})
    await play.pass_time(12)
    outcomes = set()
    for name in (*(f"{letter}{number}" for letter in "xyz" for number in range(4)), "long"):
        rounds = await play.desk.store.rounds(name)
        outcomes.update(item.outcome.value for item in rounds)
        assert [item.identical for item in await home.rounds(name)] == [True] * len(rounds), name
    assert outcomes == {"reserved", "refused", "waiting", "failed"}


async def test_pages_add_up_to_the_whole(home: House) -> None:
    """SEL-23: pages of a stated size, told with their number at first, come to what one page comes to; a round that is
    decided meanwhile is in none of them."""
    await served(home, *(f"t{number}" for number in range(7)))
    home.play.clock.advance(1)
    first = await home.call("WhatIf", asked(policy_yaml=COST_FIRST, page_size=3))
    await served(home, "late")
    pages, token = [first], first.next_page_token
    while token:
        pages.append(await home.call("WhatIf", pb.WhatIfRequest(policy_yaml=COST_FIRST, page_size=3, page_token=token)))
        token = pages[-1].next_page_token
    assert [page.report.decided_count for page in pages] == [3, 3, 1]
    assert [page.round_count for page in pages] == [7, 0, 0]
    assert sum(page.report.moves[0].count for page in pages) == 7
    assert {item.task_id for page in pages for item in page.report.examples} == {f"t{number}" for number in range(7)}


async def test_the_window_and_the_model_bound_it(home: House) -> None:
    """SEL-23: decisions before since, at or after until, and about other models are not looked at."""
    await served(home, "early")
    home.play.clock.advance(10)
    since = time_to_proto(home.play.clock.now())
    await served(home, "inside")
    home.play.clock.advance(10)
    until = time_to_proto(home.play.clock.now())
    await served(home, "after")
    home.play.clock.advance(1)
    answer = await home.call("WhatIf", pb.WhatIfRequest(policy_yaml=COST_FIRST, since_time=since, until_time=until))
    assert [item.task_id for item in answer.report.examples] == ["inside"]
    assert (await report(home, policy_yaml=COST_FIRST, model="clip")).decided_count == 3
    other = await home.call("WhatIf", asked(policy_yaml=COST_FIRST, model="another"))
    assert (other.report.decided_count, other.round_count) == (0, 0)


async def test_policies_of_a_file_go_by_their_ids(home: House) -> None:
    """SEL-23: a file's policy stands for decisions under its id alone; decisions under another stand as they were."""
    await served(home, "t1")
    named = await report(home, policy_yaml="policies: [{id: stable, order: cost_first}]\nmodels: not looked at\n")
    assert (named.changed_count, named.untouched_count) == (1, 0)
    foreign = await report(home, policy_yaml="policies: [{id: other, order: cost_first}]\n")
    assert (foreign.decided_count, foreign.changed_count, foreign.untouched_count) == (0, 0, 1)
    assert foreign.before.chosen_count == 0


async def test_another_price_list(home: House) -> None:
    """SEL-23, COST-6: a at 0.50 x 5 = 2.50 puts b's 6.00 over 1.5 baselines, so stable_first moves to a; a rate in
    dollars is converted by the list's own exchange rate, and what the list does not name keeps its price."""
    await served(home, "t1")
    cheap = "prices: [{id: a, version: 2, currency: CNY, billing_mode: per_second, rate: '0.50'}]\n"
    found = await report(home, prices_yaml=cheap)
    assert [(item.from_choice, item.to_choice) for item in found.moves] == [("b/clip", "a/clip")]
    assert (money(found.before), money(found.after)) == ({"CNY": 6.0}, {"CNY": 2.5})
    dollars = "currency: CNY\nfx: {USD: '8.00'}\n" + cheap.replace("CNY, b", "USD, b").replace("0.50", "0.25")
    found = await report(home, prices_yaml=dollars)
    assert (found.changed_count, money(found.after)) == (0, {"CNY": 6.0})
    assert (await report(home, prices_yaml=dollars.replace("8.00", "1.00"))).changed_count == 1
    unpriced = await report(home, prices_yaml=cheap.replace("per_second", "per_request"))
    assert unpriced.changed_count == 0
    untold = await report(home, prices_yaml=cheap.replace("id: a", "id: nobody"))
    assert (untold.decided_count, untold.untouched_count) == (0, 1)


def market(**changes: Any) -> dict[str, Any]:
    """The market as a catalogue file; `changes` are fields of its model."""
    names = [name.partition("/")[0] for name in SUPPLIES]
    rates = {"a": "1.00", "b": "1.20", "dear": "4.00"}
    return {
        "version": 1,
        "currency": "CNY",
        "channels": [
            {"id": name, "adapter": "ark", "base_url": "http://127.0.0.1:1", "secret": "env:KEY"} for name in names
        ],
        "supplies": [
            {"id": f"{name}/clip", "channel": name, "upstream_model": "m", "kind": "video", "prices": [name]}
            for name in names
        ],
        "prices": [
            {"id": name, "currency": "CNY", "billing_mode": "per_second", "rate": rates[name]} for name in names
        ],
        "policies": [{"id": "stable"}],
        "models": [
            {
                "id": "clip", "kind": "video", "policy": "stable", "published": True,
                "bindings": [{"supply": f"{name}/clip", "tier": "exact"} for name in names],
                **changes,
            }
        ],
    }  # fmt: skip


async def test_another_catalogue(home: House) -> None:
    """SEL-23: without b's binding, with b drained, or unable, the choice is a; closed, everybody waits; with nobody
    able, it fails; and another currency is told apart."""
    await served(home, "t1")

    async def under(file: dict[str, Any]) -> replay_pb2.WhatIfReport:
        return await report(home, catalog_yaml=yaml.safe_dump(file))

    assert (await under(market())).changed_count == 0
    bindings = [{"supply": "a/clip", "tier": "exact"}]
    drained, unable, dollars = market(), market(), market()
    drained["supplies"][1]["admin"] = "draining"
    unable["supplies"][1]["capabilities"] = {"duration_s": {"min": 1, "max": 3}}
    for file in (market(bindings=bindings), drained, unable):
        found = await under(file)
        assert [(item.from_choice, item.to_choice) for item in found.moves] == [("b/clip", "a/clip")]
    waits = await under(market(published=False))
    assert [(item.to_choice, item.count) for item in waits.moves] == [("(waits)", 1)]
    assert (waits.after.waiting_count, waits.shared_before.chosen_count) == (1, 0)
    assert "not published" in waits.examples[0].reason
    for item in unable["supplies"]:
        item["capabilities"] = {"duration_s": {"min": 1, "max": 3}}
    fails = await under(unable)
    assert (fails.after.failed_count, fails.moves[0].to_choice) == (1, "(fails)")
    assert fails.examples[0].reason.startswith("no_candidates")
    dollars["currency"], dollars["fx"] = "USD", {"CNY": "0.10"}
    found = await under(dollars)
    assert (money(found.before), money(found.after)) == ({"CNY": 6.0}, {"USD": 0.6})


async def test_limits_of_another_catalogue(home: House) -> None:
    """SEL-23, SEL-9: health and what was in use are as they were, under the limits that the file declares."""
    await served(home, "t1")
    await served(home, "t2")
    file = market()
    file["supplies"][1]["limits"] = {"concurrency": 1}
    found = await report(home, catalog_yaml=yaml.safe_dump(file))
    assert [(item.task_id, item.to_choice) for item in found.examples] == [("t2", "a/clip")]


async def test_refused_and_unreadable_rounds_are_counted_apart(home: House) -> None:
    """SEL-17, SEL-23: a refused reservation is no decision that counted; a record of no known form is told."""
    home.play.capacity.refusals = [Refused("supply b/clip", "concurrency", 5, 5)]
    await served(home, "t1")
    await home.play.pass_time(1)
    await keep_round(home, "t1", "{}")
    found = await report(home, policy_yaml=COST_FIRST)
    assert (found.refused_count, found.unreadable_count) == (1, 1)
    assert found.decided_count == 1


@pytest.mark.parametrize(
    "fields, code, words",
    [
        ({}, "validation_failed", "/alternative"),
        ({"policy_yaml": COST_FIRST, "since_time": None}, "validation_failed", "/since_time"),
        ({"policy_yaml": COST_FIRST, "page_token": "nonsense"}, "malformed_request", "page token"),
        ({"policy_yaml": "order: cheapest"}, "catalog_invalid", "order: must not be 'cheapest'"),
        ({"policy_yaml": "[1]"}, "catalog_invalid", "must be a mapping"),
        ({"policy_yaml": "a: ]"}, "catalog_invalid", "line 1"),
        ({"policy_yaml": "policies: [{id: x, ordr: y}]"}, "catalog_invalid", "policies[0].ordr"),
        ({"prices_yaml": "currency: CNY"}, "catalog_invalid", "neither a price nor a rate"),
        ({"prices_yaml": "prices: [{id: a, currency: CNY, billing_mode: per_second}]"}, "catalog_invalid", "rate"),
        ({"catalog_yaml": "version: 1\nmodels: [{id: m}]"}, "catalog_invalid", "models[0].kind"),
        ({"catalog_yaml": yaml.safe_dump(market(policy="none"))}, "catalog_invalid", "models[0].policy"),
    ],
)
async def test_what_cannot_be_asked_is_refused(home: House, fields: dict[str, Any], code: str, words: str) -> None:
    """SEL-23, CAT-1: every fault of a file by its path, before anything is decided."""
    fault = await home.refused("WhatIf", asked(**fields))
    assert fault.code == code
    assert words in fault.message


async def test_nothing_is_kept(home: House) -> None:
    """SEL-23: asking changes neither tasks, nor rounds, nor the prices in force."""
    await served(home, "t1")
    store = home.play.desk.store
    before = (await store.get("t1"), await store.rounds("t1"))
    await report(home, catalog_yaml=yaml.safe_dump(market(published=False)))
    await report(home, prices_yaml="prices: [{id: b, currency: CNY, billing_mode: per_second, rate: '0.01'}]")
    assert (await store.get("t1"), await store.rounds("t1")) == before
    await served(home, "t2")
    assert (await home.play.task("t2")).attempts[0].quote.amount == 6
