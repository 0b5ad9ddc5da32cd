"""A provider behind a witness: nothing reaches it without a Hold that the ledger holds by then (COST-9, COST-11).

Whatever a test is about, what it sends is judged; `tests/unit/routing/conftest.py` asks for the breaches at its end.
"""

from collections.abc import AsyncGenerator
from typing import Any

from services.routing.domain.catalog import Channel, Supply
from services.routing.domain.task import Attempt
from services.routing.ports import Submitted
from services.routing.ports.calls import Answered, Outgoing, Report
from services.routing.store.calls_memory import MemoryCalls
from tests.unit.routing.fake_ledger import FakeLedger

BREACHES: list[str] = []


class PaidProvider:
    """Of Tasks: `Provider`."""

    def __init__(self, inner: Any, ledger: FakeLedger, tasks: Any) -> None:
        self._inner = inner
        self._ledger = ledger
        self._tasks = tasks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def submit(self, channel: Channel, supply: Supply, attempt: Attempt) -> Submitted:
        """See the port."""
        task = await self._tasks.get(attempt.task_id)
        terms = task.request.terms
        self._ledger.expect(terms.hold if terms and terms.hold else f"task:{task.id}", BREACHES)
        answer: Submitted = await self._inner.submit(channel, supply, attempt)
        return answer


class PaidCalls:
    """Of calls: `CallProvider`."""

    def __init__(self, inner: Any, ledger: FakeLedger, calls: MemoryCalls) -> None:
        self._inner = inner
        self._ledger = ledger
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def _expect(self, outgoing: Outgoing) -> None:
        intents = (intent for tries in self._calls.intents.values() for intent in tries.values())
        for intent in intents:
            if intent.tried.id == outgoing.attempt_id:
                self._ledger.expect(intent.call.hold, BREACHES)

    async def invoke(self, channel: Channel, supply: Supply, outgoing: Outgoing) -> Answered:
        """See the port."""
        self._expect(outgoing)
        answer: Answered = await self._inner.invoke(channel, supply, outgoing)
        return answer

    def stream(
        self, channel: Channel, supply: Supply, outgoing: Outgoing
    ) -> AsyncGenerator[list[bytes] | Report, None]:
        """See the port."""
        self._expect(outgoing)
        pieces: AsyncGenerator[list[bytes] | Report, None] = self._inner.stream(channel, supply, outgoing)
        return pieces
