"""Chats that name no longest answer: compared at an equal length, held and limited at each Supply's own (COST-5,
COST-6, COST-8)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from services.routing.app.calls.invoke import invoke
from services.routing.app.calls.open_call import Asked
from services.routing.domain.calls.sizing import equal_length
from services.routing.domain.catalog import Kind
from services.routing.domain.decision import Decision, Inputs, QuoteView
from services.routing.domain.selection import select
from services.routing.domain.selection_record import record, recorded_decision, recorded_inputs, replays
from services.routing.ports import Priced
from services.routing.ports.calls import CallQuotes
from tests.unit.routing.call_stage import CallStage, FakeCallQuotes, call_stage, chat_catalog, chat_supply
from tests.unit.routing.selection_inputs import market, offer

MONTH = "tenant:t:month:2026-01-01:CNY"
SHORT, LONG = (
    chat_supply(f"{name}/talk", capabilities={"max_output_tokens": most}) for name, most in (("a", 1_000), ("b", 8_000))
)


class ByLength(FakeCallQuotes):
    """A thousandth for each token that may be written, twice that at the Supply that writes little."""

    async def quote_each(
        self, kind: str, billing_mode: str, asks: Sequence[Sequence[Priced]], revision: int
    ) -> tuple[Sequence[Mapping[str, QuoteView]], Mapping[tuple[str, int], object]]:
        """One each."""
        self.questions.append(len(asks))
        return [
            {item.supply.id: QuoteView(self._price(item), rule_id="tokens", rule_version=1) for item in ask}
            for ask in asks
        ], {}

    def _price(self, item: Priced) -> Decimal:
        each = 2 if item.supply.id == SHORT.id else 1
        return Decimal(each * item.input["max_output_tokens"]) / 1000


def by_length(**policy: object) -> CallStage:
    """One who writes 1,000 tokens for 2.00, and one who writes 8,000 for 8.00, or 1,000 for 1.00."""
    offers = chat_catalog(SHORT, LONG)
    limits = {"stable_cost_multiplier_limit": Decimal("1.5"), **policy}
    play = call_stage(replace(offers, policies={"quick": replace(offers.policies["quick"], **limits)}))
    quotes: CallQuotes = ByLength()
    play.desk = replace(play.desk, quotes=quotes)
    return play


async def called(play: CallStage, **said: int) -> str:
    """Who served it."""
    text = json.dumps({"messages": [{"role": "user", "content": "Hello."}], **said}).encode()
    _, call = await invoke(play.desk, Asked("c1", "t", "talk", text))
    await play.settled()
    return call.supply


async def test_who_may_write_longer_is_not_dearer_for_it() -> None:
    """COST-5, COST-6, COST-8: 8.00 for eight times as much is within 1.5 x 2.00, since it is 1.00 for as much; what is
    recorded has both figures, and what is held is the worst that it may really come to."""
    play = by_length()
    assert await called(play) == LONG.id
    (_, (round_,)) = await play.store.get("c1") or (None, ())
    quotes = json.loads(round_.record)["inputs"]["quotes"]
    assert [(quotes[name]["amount"], quotes[name]["compared"]) for name in (SHORT.id, LONG.id)] == [
        ("2", "2"),
        ("8", "1"),
    ]
    entries = await play.tasks.ledger.budgets.entries(MONTH, 0, 9)
    assert entries[0].held.cost / 1e9 >= 8


async def test_a_length_that_is_named_needs_no_other() -> None:
    """COST-5: one question more where lengths differ, in the same call; none where the caller says one."""
    for said, asks in (({}, [2]), ({"max_completion_tokens": 500}, [1])):
        play = by_length()
        assert await called(play, **said) == LONG.id
        assert play.desk.quotes.questions == asks


async def test_the_absolute_limit_is_for_what_it_may_really_cost() -> None:
    """COST-6: 8.00 is over a limit of 5.00, however cheap it is by the token."""
    wide = Decimal(3)
    assert await called(by_length(absolute_cost_limit=Decimal(5), stable_cost_multiplier_limit=wide)) == SHORT.id


def test_the_shortest_of_the_longest_answers() -> None:
    """COST-5: every candidate can write that much; what is equal already, or no chat, is left as it is."""
    said = {"messages": {"tokens": 7}}
    assert equal_length(Kind.CHAT, said, [LONG, SHORT]) == {**said, "max_completion_tokens": 1_000}
    assert equal_length(Kind.CHAT, said, [SHORT, SHORT]) is None
    assert equal_length(Kind.CHAT, said, [LONG, chat_supply("c/talk")]) == {**said, "max_completion_tokens": 4096}
    assert equal_length(Kind.CHAT, {**said, "max_tokens": 9}, [LONG, SHORT]) is None
    assert equal_length(Kind.EMBEDDING, said, [LONG, SHORT]) is None


def decided(compared: str | None) -> tuple[Inputs, Decision]:
    """Over a Supply at 5.00 and one at 40.00, which may be less at an equal length."""
    inputs = market(offer("a/x", price="5.00"), offer("b/x", price="40.00"))
    weighed = inputs.quotes["b/x"]._replace(compared=None if compared is None else Decimal(compared))
    inputs = replace(inputs, quotes={**inputs.quotes, "b/x": weighed})
    return inputs, select(inputs)


def test_what_was_decided_without_the_figure_reads_the_same() -> None:
    """VER-1, SEL-22, COST-8: a record from before has no such figure and replays to the same bytes; a new one has."""
    inputs, decision = decided(None)
    old = json.loads(record(inputs, decision))
    for quote in old["inputs"]["quotes"].values():
        del quote["compared"]
    saved = json.dumps(old, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert replays(saved)
    dropped = next(fate for fate in recorded_decision(saved).fates if fate.supply == "b/x")
    assert dropped.reason == "stable_cost_multiplier_limit"
    inputs, decision = decided("4.00")
    assert {fate.supply: fate.reason for fate in decision.fates if fate.fate == "dropped"} == {}
    kept = record(inputs, decision)
    assert (recorded_inputs(kept), replays(kept)) == (inputs, True)
