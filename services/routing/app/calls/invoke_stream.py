"""One synchronous call whose answer comes piece by piece (SYN-8).

Laws of this file:
- until the first token another Supply may serve, and nothing has been given to the caller; after it the stream ends,
  with its own end or with an honest fault;
- a provider is waited for, never the caller: while a piece is being taken no watchdog runs;
- a caller who leaves ends the provider's stream; what was used is settled either way.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from libs.faults.fault import Fault
from libs.faults.registry import Category
from services.routing.app.calls.answers import Shelf
from services.routing.app.calls.call_desk import CallDesk
from services.routing.app.calls.conduct import Conduct, Started
from services.routing.app.calls.invoke import not_answered
from services.routing.app.calls.open_call import Asked, open_call
from services.routing.app.calls.settle_call import CUT_SHORT
from services.routing.app.calls.watchdog import Watchdog
from services.routing.domain.calls.call import Call
from services.routing.domain.calls.chunks import Heard
from services.routing.domain.calls.sizing import input_tokens
from services.routing.ports.calls import Outgoing, Report


async def invoke_stream(desk: CallDesk, asked: Asked) -> AsyncGenerator[list[bytes] | Call, None]:
    """The pieces, those together that came together, and at the very end the call as it ended. Raises the Fault with
    which it ended otherwise."""
    opened = await open_call(desk, asked)
    conduct, shelf = Conduct(desk, opened), Shelf(desk, opened)
    if (kept := await shelf.find()) is not None:
        yield list(kept.pieces)
        yield conduct.found(kept.artifacts)
        return
    given: list[bytes] = []
    heard = Heard(0)
    finish_reason = ""
    try:
        while True:
            started = await conduct.start()
            heard = Heard(input_tokens(conduct.kind, started.decision.input))
            try:
                async with aclosing(_pieces(conduct, started, heard)) as pieces:
                    async for piece in pieces:
                        if isinstance(piece, Report):
                            finish_reason = piece.finish_reason
                            await conduct.succeeded(started, piece, heard.estimate())
                            break
                        if shelf.used:
                            given += piece
                        yield piece
            except Fault as fault:
                conduct.failed(started, _honest(fault, heard), heard.estimate() if heard.begun else None)
                continue
            break
    except (asyncio.CancelledError, GeneratorExit):
        conduct.abandoned(heard.estimate() if heard.begun else None)
        raise
    shelf.keep(given, finish_reason, conduct.changed is not None)
    yield conduct.finished(conduct.tries[-1].usage)


async def _pieces(conduct: Conduct, started: Started, heard: Heard) -> AsyncGenerator[list[bytes] | Report, None]:
    """One provider stream under its watchdogs, its report last. What comes before the first token is held back."""
    limits, left_s = started.channel.timeouts, conduct.left_s
    first_s = min(limits.ttft_s or left_s, left_s)
    outgoing = Outgoing(
        attempt_id=started.tried.id,
        kind=str(conduct.kind),
        input=conduct.text_for(started),
        first_token_s=first_s,
        inter_token_s=limits.inter_token_s,
        longest_s=left_s,
    )
    held: list[bytes] = []
    waited_s = first_s
    try:
        async with Watchdog(conduct.desk.watch, first_s) as dog:
            async with aclosing(conduct.desk.provider.stream(started.channel, started.supply, outgoing)) as stream:
                async for piece in stream:
                    if isinstance(piece, Report):
                        dog.rest()
                        if held:
                            yield held
                        yield piece
                        return
                    for chunk in piece:
                        heard.hear(chunk)
                    if not heard.begun:
                        held += piece
                        continue
                    dog.rest()
                    if conduct.first_token() and held:
                        piece, held = held + piece, []
                    yield piece
                    waited_s = min(limits.inter_token_s or conduct.left_s, conduct.left_s)
                    dog.push(max(waited_s, 0.001))
    except TimeoutError as error:
        full_s = limits.inter_token_s if heard.begun else limits.ttft_s
        raise not_answered(started, waited_s, cut_short=not full_s or waited_s < full_s) from error
    raise Fault.of("submission_unknown", f"the stream of {started.supply.id} ended without its last event")


def _honest(fault: Fault, heard: Heard) -> Fault:
    """After the first token nothing can be tried again: an end that proves nothing is an interruption."""
    if not heard.begun or fault.category is not Category.UNKNOWN or fault.code == "stream_interrupted":
        return fault
    text = f"the stream broke off after {heard.pieces} pieces: {fault.message}"
    cut = {CUT_SHORT: fault.metadata[CUT_SHORT]} if CUT_SHORT in fault.metadata else {}
    return Fault.of("stream_interrupted", text, metadata=cut)
