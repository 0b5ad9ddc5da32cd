"""One synchronous call with one answer (SYN-1)."""

import asyncio

from libs.faults.fault import Fault
from services.routing.app.calls.call_desk import CallDesk
from services.routing.app.calls.conduct import Conduct, Started
from services.routing.app.calls.open_call import Asked, open_call
from services.routing.app.calls.settle_call import CUT_SHORT
from services.routing.app.calls.watchdog import Watchdog
from services.routing.domain.calls.call import Call
from services.routing.domain.calls.sizing import BYTES_PER_TOKEN, input_tokens
from services.routing.domain.catalog import Kind
from services.routing.domain.usage import Usage
from services.routing.ports.calls import Answered, Outgoing

WITH_MEDIA = frozenset({Kind.IMAGE, Kind.SPEECH})
"""Kinds whose answer is fetched and stored before it is told."""


async def invoke(desk: CallDesk, asked: Asked) -> tuple[bytes, Call]:
    """The output and the call as it ended. Raises the Fault with which it ended otherwise."""
    conduct = Conduct(desk, await open_call(desk, asked))
    answered = await _served(conduct)
    return answered.output, conduct.finished(answered.report.usage, answered.artifacts)


async def _served(conduct: Conduct) -> Answered:
    """One answer to one input, by whoever gives it."""
    started: Started | None = None
    try:
        while True:
            started = await conduct.start()
            try:
                answered = await _sent(conduct, started)
            except Fault as fault:
                conduct.failed(started, fault)
                continue
            await conduct.succeeded(started, answered.report, _estimate(conduct, started, answered))
            return answered
    except asyncio.CancelledError:
        conduct.abandoned(started, _estimate(conduct, started) if started else Usage())
        raise


async def _sent(conduct: Conduct, started: Started) -> Answered:
    """One provider call, within its own limit and what is left of the call's."""
    limit_s, left_s = started.channel.timeouts.submit_s, conduct.left_s
    whole_s = limit_s + (conduct.desk.settings.delivery_s if conduct.kind in WITH_MEDIA else 0.0)
    outgoing = Outgoing(
        attempt_id=started.tried.id,
        kind=str(conduct.kind),
        input=conduct.text_for(started),
        first_token_s=min(limit_s, left_s),
        inter_token_s=0.0,
        longest_s=min(whole_s, left_s),
    )
    try:
        async with Watchdog(conduct.desk.world.clock, outgoing.longest_s):
            return await conduct.desk.provider.invoke(started.channel, started.supply, outgoing)
    except TimeoutError as error:
        raise not_answered(started, outgoing.longest_s, cut_short=left_s < whole_s) from error


def _estimate(conduct: Conduct, started: Started, answered: Answered | None = None) -> Usage:
    """What a try may have used, where its provider does not say: of tokens, which are in the answer. Else nothing."""
    if conduct.kind is not Kind.CHAT and conduct.kind is not Kind.EMBEDDING:
        return Usage()
    made = len(answered.output) // BYTES_PER_TOKEN if answered and conduct.kind is Kind.CHAT else 0
    return Usage(input_tokens=input_tokens(conduct.kind, started.decision.input), output_tokens=made)


def not_answered(started: Started, seconds: float, *, cut_short: bool) -> Fault:
    """Nothing was heard in time. `cut_short`: by the time of the call, not by that of the Channel."""
    text = f"no answer from {started.supply.id} within {seconds:g} s"
    return Fault.of("submission_unknown", text, metadata={CUT_SHORT: "the call's own time"} if cut_short else {})
