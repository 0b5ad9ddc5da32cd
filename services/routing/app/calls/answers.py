"""The response cache of a model that asks for one (SYN-10). It may save a call, never spoil one."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import msgspec

from libs.faults.fault import Fault
from libs.kernel.deadlines import carry_deadline
from services.routing.app.calls.call_desk import CallDesk
from services.routing.app.calls.open_call import Opened
from services.routing.domain.calls.canonical import cache_key, cache_ttl_s, is_worth_keeping
from services.routing.domain.task import Artifact

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Kept:
    """An answer as it was given: one piece, or the pieces of a stream."""

    pieces: tuple[bytes, ...]
    artifacts: tuple[Artifact, ...] = ()


_kept = msgspec.msgpack.Decoder(Kept)


class Shelf:
    """Where the answer to one call may be, and may be put."""

    def __init__(self, desk: CallDesk, opened: Opened) -> None:
        asked, model = opened.asked, opened.model
        self._desk = desk
        self._tenant = asked.tenant
        self._ttl_s = 0.0 if asked.skip_cache else cache_ttl_s(model)
        self._key = cache_key(model, opened.request, opened.given, asked.streamed) if self._ttl_s > 0 else ""

    @property
    def used(self) -> bool:
        """Whether the model keeps answers and the caller has not said no."""
        return self._ttl_s > 0

    async def find(self) -> Kept | None:
        """The answer that is kept; None where there is none, or nobody can say."""
        if not self.used:
            return None
        try:
            found = await self._desk.answers.answer(self._tenant, self._key, self._desk.now())
        except Fault as fault:
            log.warning("the response cache does not answer: %s", fault)
            return None
        return None if found is None else _kept.decode(found)

    def keep(
        self, pieces: Sequence[bytes], finish_reason: str, degraded: bool, artifacts: tuple[Artifact, ...] = ()
    ) -> None:
        """Keep it, where it is worth keeping; nobody waits for that."""
        if self.used and is_worth_keeping(finish_reason, degraded, sum(map(len, pieces))):
            self._desk.errands.begin(self._keep(Kept(tuple(pieces), artifacts)))

    async def _keep(self, answer: Kept) -> None:
        carry_deadline(None)
        until = self._desk.now() + timedelta(seconds=self._ttl_s)
        try:
            await self._desk.answers.keep_answer(self._tenant, self._key, msgspec.msgpack.encode(answer), until)
        except Fault as fault:
            log.warning("an answer was not kept in the response cache: %s", fault)
