"""Synchronous calls in memory: the twin of `calls_postgres`."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from libs.faults.fault import Fault
from services.routing.domain.calls.call import Call, CallState
from services.routing.domain.rounds import SelectionRound
from services.routing.ports.calls import CallQuery, Intent
from services.routing.store.paging import key_of, token_of


class MemoryCalls:
    """`CallStore` and `AnswerStore`."""

    def __init__(self) -> None:
        self.intents: dict[str, dict[int, Intent]] = {}
        self._ended: dict[str, tuple[Call, tuple[SelectionRound, ...]]] = {}
        self._answers: dict[tuple[str, str], tuple[bytes, datetime]] = {}

    async def intend(self, intent: Intent) -> None:
        """See the port."""
        call_id, number = intent.call.id, intent.tried.number
        known = self.intents.setdefault(call_id, {})
        if number in known or call_id in self._ended:
            raise known_already(call_id)
        known[number] = intent

    async def end(self, call: Call, rounds: Sequence[SelectionRound]) -> bool:
        """See the port."""
        if call.id in self._ended:
            return False
        self._ended[call.id] = call, tuple(rounds)
        return True

    async def get(self, call_id: str) -> tuple[Call, tuple[SelectionRound, ...]] | None:
        """See the port."""
        intents = self.intents.get(call_id, {})
        sent = [intents[number].round for number in sorted(intents)]
        if call_id in self._ended:
            call, others = self._ended[call_id]
            return call, tuple(sorted((*sent, *others), key=lambda item: item.round))
        return (intents[max(intents)].call, tuple(sent)) if intents else None

    async def ended(self, call_ids: Sequence[str]) -> tuple[Call, ...]:
        """See the port."""
        return tuple(self._ended[name][0] for name in sorted({*call_ids} & self._ended.keys()))

    async def paid_by(self, hold: str, since: datetime) -> tuple[Call, ...] | None:
        """See the port."""
        sent = {call_id for call_id, tries in self.intents.items() if tries[max(tries)].call.hold == hold}
        if sent - self._ended.keys():
            return None
        return tuple(call for call, moment in self._moments() if call.hold == hold and moment >= since)

    async def find(self, query: CallQuery, token: str, size: int) -> tuple[tuple[Call, ...], str]:
        """See the port."""
        after = key_of(token)
        fits = [(moment, call.id) for call, moment in self._moments() if _fits(query, call, moment)]
        left = sorted((key for key in fits if after is None or key < after), reverse=True)
        page = tuple(self._ended[call_id][0] for _, call_id in left[:size])
        return page, token_of(*left[size - 1]) if len(left) > size else ""

    def _moments(self) -> Iterator[tuple[Call, datetime]]:
        return ((call, call.finished_at) for call, _ in self._ended.values() if call.finished_at is not None)

    async def overdue(self, since: datetime, until: datetime, count: int) -> tuple[Call, ...]:
        """See the port."""
        last = [known[max(known)] for call_id, known in self.intents.items() if known and call_id not in self._ended]
        due = [intent for intent in last if since <= intent.overdue_at <= until]
        return tuple(intent.call for intent in sorted(due, key=lambda item: (item.overdue_at, item.call.id))[:count])

    async def last_success(self, model: str, since: datetime) -> datetime | None:
        """See the port."""
        moments = [
            call.finished_at
            for call, _ in self._ended.values()
            if call.model == model and call.state is CallState.SUCCEEDED and call.finished_at is not None
        ]
        return max((moment for moment in moments if moment >= since), default=None)

    async def forget(self, before: datetime, now: datetime, count: int) -> int:
        """See the port."""
        old = [key for key, (call, _) in self._ended.items() if call.finished_at and call.finished_at < before][:count]
        for call_id in old:
            del self._ended[call_id]
            self.intents.pop(call_id, None)
        stale = [key for key, (_, until) in self._answers.items() if until <= now][:count]
        for key in stale:
            del self._answers[key]
        return len(old) + len(stale)

    async def answer(self, tenant: str, key: str, now: datetime) -> bytes | None:
        """See the port."""
        kept = self._answers.get((tenant, key))
        return kept[0] if kept is not None and kept[1] > now else None

    async def keep_answer(self, tenant: str, key: str, answer: bytes, until: datetime) -> None:
        """See the port."""
        self._answers[tenant, key] = answer, until


def _fits(query: CallQuery, call: Call, finished_at: datetime) -> bool:
    return (
        query.tenant in ("", call.tenant)
        and query.model in ("", call.model)
        and (not query.states or call.state in query.states)
        and query.session_id in ("", call.session_id)
        and (query.since is None or finished_at >= query.since)
        and (query.until is None or finished_at < query.until)
    )


def known_already(call_id: str) -> Fault:
    """A call is made once: its output is not kept, so there is nothing to answer a second one with."""
    text = f"call {call_id!r} was made before; read it with GetCall, and choose a new call_id for another"
    return Fault.of("already_exists", text)
