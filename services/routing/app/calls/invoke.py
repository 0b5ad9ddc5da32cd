"""One synchronous call with one answer (SYN-1)."""

import asyncio
from collections.abc import Mapping
from typing import Any

from libs.faults.fault import Fault
from libs.kernel.figures import plain
from services.routing.app.calls.answers import Shelf
from services.routing.app.calls.call_desk import CallDesk
from services.routing.app.calls.conduct import Conduct, Started
from services.routing.app.calls.open_call import Asked, open_call
from services.routing.app.calls.settle_call import CUT_SHORT
from services.routing.app.calls.watchdog import Watchdog
from services.routing.domain.calls.batches import joined, next_batch, texts_of, total
from services.routing.domain.calls.call import Call
from services.routing.domain.calls.sizing import BYTES_PER_TOKEN, rest_of
from services.routing.domain.catalog import Kind
from services.routing.ports.calls import Answered, Outgoing, Report

WITH_MEDIA = frozenset({Kind.IMAGE, Kind.SPEECH})
"""Kinds whose answer is fetched and stored before it is told."""


async def invoke(desk: CallDesk, asked: Asked) -> tuple[bytes, Call]:
    """The output and the call as it ended. Raises the Fault with which it ended otherwise."""
    opened = await open_call(desk, asked)
    conduct, shelf = Conduct(desk, opened), Shelf(desk, opened)
    if (kept := await shelf.find()) is not None:
        return kept.pieces[0], conduct.found(kept.artifacts)
    try:
        answered = await (_embedded(conduct) if conduct.kind is Kind.EMBEDDING else _served(conduct))
    except asyncio.CancelledError:
        conduct.abandoned()
        raise
    report = answered.report
    shelf.keep((answered.output,), report.finish_reason, conduct.changed is not None, answered.artifacts)
    return answered.output, conduct.finished(report.usage, answered.artifacts)


async def _served(conduct: Conduct) -> Answered:
    """One answer to one input, by whoever gives it."""
    while True:
        answered = await _tried(conduct, await conduct.start())
        if answered is not None:
            return answered


async def _tried(conduct: Conduct, started: Started, given: Mapping[str, Any] | None = None) -> Answered | None:
    """One try; None where another may follow. `given` in the place of the whole input."""
    try:
        answered = await _sent(conduct, started, given)
    except Fault as fault:
        conduct.failed(started, fault)
        return None
    made = len(answered.output) // BYTES_PER_TOKEN if conduct.kind is Kind.CHAT else None
    await conduct.succeeded(started, answered.report, conduct.estimate(started, made))
    return answered


async def _sent(conduct: Conduct, started: Started, given: Mapping[str, Any] | None) -> Answered:
    """One provider call, within its own limit and what is left of the call's."""
    limit_s, left_s = started.channel.timeouts.submit_s, conduct.left_s
    whole_s = limit_s + (conduct.desk.settings.delivery_s if conduct.kind in WITH_MEDIA else 0.0)
    outgoing = Outgoing(
        attempt_id=started.tried.id,
        kind=str(conduct.kind),
        input=conduct.text_for(started, given),
        first_token_s=min(limit_s, left_s),
        inter_token_s=0.0,
        longest_s=min(whole_s, left_s),
    )
    try:
        async with Watchdog(conduct.desk.watch, outgoing.longest_s):
            return await conduct.desk.provider.invoke(started.channel, started.supply, outgoing)
    except TimeoutError as error:
        raise not_answered(started, outgoing.longest_s, cut_short=left_s < whole_s) from error


def not_answered(started: Started, seconds: float, *, cut_short: bool) -> Fault:
    """Nothing was heard in time. `cut_short`: by the time of the call, not by that of the Channel."""
    text = f"no answer from {started.supply.id} within {plain(round(seconds, 2))} s"
    return Fault.of("submission_unknown", text, metadata={CUT_SHORT: "the call's own time"} if cut_short else {})


async def _embedded(conduct: Conduct) -> Answered:
    """Vectors for all texts, in as many provider calls as it takes, all of one upstream model (SYN-11)."""
    whole_digest = left = conduct.opened.request.input
    texts, place = texts_of(conduct.opened.given["input"]), 0
    parts: list[Answered] = []
    counts: list[int] = []
    made_by = ""
    while place < len(texts):
        started = await conduct.start(left)
        if made_by not in ("", started.supply.upstream_model):
            parts, counts, place, left = [], [], 0, whole_digest  # vectors of two models are no answer to one request
        batch = next_batch(texts, place, started.supply.capabilities.get("max_batch"))
        whole = len(batch) == len(texts)
        answered = await _tried(conduct, started, None if whole else {**conduct.opened.given, "input": batch})
        if answered is None:
            continue
        if whole:
            return answered
        parts.append(answered)
        counts.append(len(batch))
        place += len(batch)
        left = rest_of(left, batch)
        conduct.prefer, made_by = started.supply.id, started.supply.upstream_model
    usage = total([part.report.usage for part in parts])
    try:
        return Answered(joined([part.output for part in parts], counts), Report(usage))
    except Fault as fault:
        raise conduct.ended(fault) from fault
