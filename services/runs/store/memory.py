"""Runs in memory: the same contract, gone with the process. Documents go through the codec, so nothing is shared."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice

from libs.faults.fault import Fault
from libs.kernel.ids import Ids
from services.runs.domain.run import Draft, Event, Run, RunState
from services.runs.store.codec import run_from_document, run_to_document
from services.runs.store.numbering import number


class MemoryRuns:
    """Implements `ports.Runs`. Nothing here awaits, so every method is one atomic step."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._runs: dict[str, dict[str, object]] = {}
        self._events: dict[str, list[Event]] = {}
        self._keys: dict[tuple[str, str], tuple[str, str]] = {}

    async def add(
        self, run: Run, drafts: Sequence[Draft], key: str, fingerprint: str, now: datetime
    ) -> tuple[Run, bool]:
        """See the port."""
        if key:
            earlier = await self.find_by_key(run.tenant, key, fingerprint)
            if earlier is not None:
                return earlier, True
            self._keys[(run.tenant, key)] = (run.id, fingerprint)
        return self._write(run, drafts, now), False

    async def find_by_key(self, tenant: str, key: str, fingerprint: str) -> Run | None:
        """See the port."""
        run_id, known = self._keys.get((tenant, key), ("", fingerprint))
        if fingerprint not in (known, ""):
            raise Fault.of("idempotency_conflict", f"key {key!r} came before with another body")
        return self._read(run_id) if run_id else None

    async def save(self, run: Run, drafts: Sequence[Draft], now: datetime) -> Run | None:
        """See the port."""
        if self._read(run.id).revision != run.revision:
            return None
        return self._write(replace(run, revision=run.revision + 1), drafts, now)

    def _read(self, run_id: str) -> Run:
        return run_from_document(self._runs[run_id])

    def _write(self, run: Run, drafts: Sequence[Draft], now: datetime) -> Run:
        events = number(run, drafts, self._ids.ulid, now)
        self._events.setdefault(run.id, []).extend(events)
        kept = replace(run, last_sequence=run.last_sequence + len(events))
        self._runs[run.id] = run_to_document(kept)
        return kept

    async def get(self, run_id: str) -> Run | None:
        """See the port."""
        return self._read(run_id) if run_id in self._runs else None

    async def page(
        self, tenant: str, states: Sequence[RunState], label: tuple[str, str | None] | None, before: str, size: int
    ) -> list[Run]:
        """See the port."""
        found = (self._read(run_id) for run_id in sorted(self._runs, reverse=True) if not before or run_id < before)
        fitting = (run for run in found if run.tenant == tenant and (not states or run.state in states))
        return [run for run in fitting if label is None or _has(run, *label)][:size]

    async def live(self, states: Sequence[RunState], after: str, size: int) -> list[Run]:
        """See the port."""
        found = (run_id for run_id in sorted(self._runs) if run_id > after and self._runs[run_id]["state"] in states)
        return [self._read(run_id) for run_id in islice(found, size)]

    async def events(self, run_id: str, after: int, size: int) -> list[Event]:
        """See the port."""
        return [event for event in self._events.get(run_id, ()) if event.sequence > after][:size]

    async def last_sequences(self, run_ids: Sequence[str]) -> Mapping[str, int]:
        """See the port."""
        return {run_id: self._read(run_id).last_sequence for run_id in run_ids if run_id in self._runs}


def _has(run: Run, key: str, value: str | None) -> bool:
    return key in run.labels and (value is None or run.labels[key] == value)
