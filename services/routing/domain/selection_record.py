"""What is kept of a selection, and its replay (SEL-22).

The record holds the frozen inputs and the decision as canonical JSON. Replaying reads the inputs alone, selects again,
and the decision must have the same bytes.

`record_text` writes what `canonical_json({"format", "inputs", "decision"})` would: every test of the one is a test of
the other. It is written by hand because every decision of a Task pays for it: the parts that a catalogue revision fixes
are taken as they were written the first time (`market.texts`), and what there is one of for every candidate goes
straight into text.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from json.encoder import encode_basestring as quoted
from typing import Any

from libs.kernel.canonical import canonical_text, field_names, plain
from libs.kernel.money import Money
from services.routing.domain.catalog import Catalog
from services.routing.domain.decision import CapacityView, Decision, Fate, HealthView, Inputs, QuoteView
from services.routing.domain.market import KEPT, market_of
from services.routing.domain.offer import offer_of
from services.routing.domain.request import Request
from services.routing.domain.selection import select
from services.routing.domain.thaw import thaw
from services.routing.domain.trial import model_in, policy_in

FORMAT = 1
_BEFORE_DECISION = '{"decision":'
"""Keys are sorted: every record begins so."""


def record(inputs: Inputs, decision: Decision) -> bytes:
    """Canonical JSON: `{"format", "inputs", "decision"}`."""
    return record_text(inputs, decision).encode()


def record_text(inputs: Inputs, decision: Decision) -> str:
    """The same, not yet encoded."""
    return _written(inputs, decision, market_of(inputs).texts, _NAMES[Inputs])


def brief_text(inputs: Inputs, decision: Decision) -> str:
    """The record without what the catalogue revision fixes: a few hundred bytes, where thousands of records of one
    revision are kept. `whole_text` gives back what `record_text` would have written."""
    return _written(inputs, decision, {}, _BRIEF)


def recorded_revision(saved: str) -> int:
    """The catalogue revision that a record, a brief one too, was decided under."""
    return int(json.loads(saved)["inputs"]["catalog_revision"])


def whole_text(brief: str, catalog: Catalog) -> str:
    """A brief record with its part of that catalogue revision."""
    kept = json.loads(brief)["inputs"]
    model = model_in(catalog, kept["request"]["model"])
    if model is None:
        raise KeyError(kept["request"]["model"])
    offer = offer_of(catalog, model)
    fixed = {
        "model": model,
        "policy": policy_in(catalog, model),
        "supplies": offer.supplies,
        "channels": offer.channels,
        "rules": offer.rules,
        "prices": offer.prices,
    }
    inputs = canonical_text({**kept, **{name: plain(part) for name, part in fixed.items()}})
    return f'{_BEFORE_DECISION}{decision_text(brief)},"format":{FORMAT},"inputs":{inputs}}}'


def _written(inputs: Inputs, decision: Decision, fixed: Mapping[str, str], names: tuple[str, ...]) -> str:
    written = {
        **fixed,
        "quotes": _quotes(inputs.quotes),
        "supply_health": _each(inputs.supply_health, _health),
        "channel_health": _each(inputs.channel_health, _health),
        "supply_capacity": _each(inputs.supply_capacity, _capacity),
        "channel_capacity": _each(inputs.channel_capacity, _capacity),
    }
    given, sent = _mapping(inputs.request.input), ""
    written["request"] = _request(inputs.request, given)
    if not decision.rule and decision.input == inputs.request.input:  # it is sent as it came: mostly so
        sent = given
    parts = _object(inputs, written, names)
    return f'{_BEFORE_DECISION}{decision_json(decision, sent)},"format":{FORMAT},"inputs":{parts}}}'


def decision_json(decision: Decision, sent: str = "") -> str:
    """The canonical JSON of a decision; `sent` is that of its input, where it is known."""
    written = {"fates": f"[{','.join(map(_fate, decision.fates))}]", "input": sent or _mapping(decision.input)}
    return _object(decision, written, _NAMES[Decision])


def recorded_inputs(saved: bytes | str) -> Inputs:
    """The inputs of a record."""
    return thaw(Inputs, json.loads(saved)["inputs"])


def recorded_decision(saved: bytes | str) -> Decision:
    """The decision of a record, as it was."""
    return thaw(Decision, json.loads(saved)["decision"])


def decision_text(saved: str) -> str:
    """The decision of a record as it stands there, not read and written anew. ValueError if it is no record."""
    if not saved.startswith(_BEFORE_DECISION):
        raise ValueError("it does not begin with a decision")
    begin = len(_BEFORE_DECISION)
    _, end = json.JSONDecoder().raw_decode(saved, begin)
    json.loads(saved)  # what follows is whole as well
    return saved[begin:end]


def replay(saved: bytes | str) -> Decision:
    """Select again from the recorded inputs."""
    return select(recorded_inputs(saved))


def replays(saved: bytes | str) -> bool:
    """Whether the same decision comes out, byte for byte."""
    text = saved.decode() if isinstance(saved, bytes) else saved
    return decision_json(replay(text)) == decision_text(text)


# --- Values as text ---------------------------------------------------------------------------------------------------


def _object(value: Inputs | Decision, written: Mapping[str, str], names: Sequence[str]) -> str:
    """These fields, in the order of their names; those in `written` are text already."""
    parts = [f'"{name}":{written[name] if name in written else _any(getattr(value, name))}' for name in names]
    return f"{{{','.join(parts)}}}"


def _each(views: Mapping[str, Any], text: Callable[[Any], str]) -> str:
    if not views:
        return "{}"
    return f"{{{','.join([f'{quoted(key)}:{text(views[key])}' for key in sorted(views)])}}}"


def _sequence(value: Sequence[Any]) -> str:
    return f"[{','.join(map(_any, value))}]"


def _mapping(value: Mapping[Any, Any]) -> str:
    return canonical_text(value) if value else "{}"


def _any(value: Any) -> str:
    write = _WRITERS.get(type(value))
    return canonical_text(value) if write is None else write(value)


def _request(value: Request, given: str) -> str:
    deadline = "null" if value.deadline is None else canonical_text(value.deadline)
    terms = "null" if value.terms is None else canonical_text(value.terms)
    return (
        f'{{"billing_mode":{quoted(value.billing_mode)},"deadline":{deadline},'
        f'"degradation":{quoted(value.degradation)},"input":{given},"model":{quoted(value.model)},'
        f'"priority":{quoted(value.priority)},"tenant":{quoted(value.tenant)},"terms":{terms}}}'
    )


def _money(value: Money) -> str:
    return f'{{"amount":"{_decimal(value.amount)}","currency":{quoted(value.currency)}}}'


def _decimal(value: Decimal) -> str:
    text = str(value)
    return f"{value:f}" if "E" in text else text


def _number(value: float | None) -> str:
    return "null" if value is None else str(value) if type(value) is int else canonical_text(value)


def _rate(value: float | None) -> str:
    """A success rate: mostly a fraction, whose text is its own."""
    return repr(value) if type(value) is float and 0.0 < value < 1.0 else _number(value)


def _quote(view: QuoteView) -> str:
    amount, reason, rule, version, rate, kind, words, compared = view
    return (
        f'{{"amount":{"null" if amount is None else quoted(_decimal(amount))},'
        f'"compared":{"null" if compared is None else quoted(_decimal(compared))},"exchange_rate":{quoted(rate)},'
        f'"explanation":{quoted(words)},"kind":{quoted(kind)},"rule_id":{quoted(rule)},"rule_version":{version},'
        f'"unpriced_reason":{quoted(reason)}}}'
    )


def _quotes(views: Mapping[str, QuoteView]) -> str:
    """Calls that are alike are decided over the same quotes: known by the very object, which is held like a market."""
    if len(views) > FEW:
        return _each(views, _quote)
    known = _told.get(id(views))
    if known is None:
        while len(_told) >= KEPT:
            del _told[next(iter(_told))]
        known = _told[id(views)] = (views, _each(views, _quote))
    return known[1]


FEW = 32
"""Quotes whose text is kept: a call has a handful, a decision over thousands is never made twice."""
_told: dict[int, tuple[Mapping[str, QuoteView], str]] = {}


@lru_cache(maxsize=4096)
def _health(view: HealthView) -> str:
    """One view of a snapshot goes into every record that is decided by it."""
    state, epoch, revision, limit, rate, low, samples, until = view
    return (
        f'{{"cooldown_until":{"null" if until is None else canonical_text(until)},"epoch":{epoch},'
        f'"limit":{"null" if limit is None else limit},"revision":{revision},"samples":{samples},'
        f'"state":{quoted(state)},"success_rate":{_rate(rate)},"success_rate_low":{_rate(low)}}}'
    )


def _capacity(view: CapacityView) -> str:
    configured, used, current, rpm, rpm_used, tpm, tpm_used, adaptive, until, room = view
    return (
        f'{{"adaptive":{"null" if adaptive is None else adaptive},"configured":{configured},'
        f'"frozen_until":{"null" if until is None else canonical_text(until)},"in_use":{used},'
        f'"in_use_current_epoch":{current},"room_at":{"null" if room is None else canonical_text(room)},"rpm":{rpm},'
        f'"rpm_used":{rpm_used},"tpm":{tpm},"tpm_used":{tpm_used}}}'
    )


def _fate(fate: Fate) -> str:
    supply, channel, tier, word, rank, step, reason, figures, quote, health, rate, free, priority = fate
    return (
        f'{{"channel":{quoted(channel)},"fate":"{word}","figures":{quoted(figures)},'
        f'"free_slots":{"null" if free is None else free},"health":{quoted(health)},"priority":{priority},'
        f'"quote":{"null" if quote is None else _money(quote)},"rank":{rank},"reason":{quoted(reason)},'
        f'"step":"{step}","success_rate":{_rate(rate)},"supply":{quoted(supply)},"tier":"{tier}"}}'
    )


_WRITERS: Mapping[type[Any], Callable[[Any], str]] = {
    str: quoted,
    bool: lambda value: "true" if value else "false",
    int: str,
    type(None): lambda value: "null",
    Money: _money,
    CapacityView: _capacity,
    datetime: lambda value: f'"{plain(value)}"',
    tuple: _sequence,
    dict: _mapping,
}
_NAMES = {kind: tuple(sorted(field_names(kind))) for kind in (Inputs, Decision)}
_FIXED = frozenset({"model", "policy", "supplies", "channels", "rules", "prices"})
"""What a catalogue revision fixes: the fields that `market_of(inputs).texts` has."""
_BRIEF = tuple(name for name in _NAMES[Inputs] if name not in _FIXED)
