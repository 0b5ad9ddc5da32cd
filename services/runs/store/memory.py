"""Runs and desks in memory: the same contract, gone with the process. Documents go through the codec, so nothing is
shared."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Any

from libs.faults.fault import Fault
from libs.kernel.ids import Ids
from services.runs.domain.callbacks import Callback, callback_of
from services.runs.domain.desks import RANKS, DeadLetter, DeskChanges, Review, ReviewState
from services.runs.domain.memos import Memo
from services.runs.domain.run import MOVING_STATES, PRUNABLE_STATES, Draft, Event, Run, RunState
from services.runs.store import codec
from services.runs.store.codec import run_from_document, run_to_document
from services.runs.store.numbering import number


class MemoryRuns:
    """Implements `ports.Runs` and `ports.Desks`. Nothing here awaits, so every method is one atomic step."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._runs: dict[str, dict[str, Any]] = {}
        self._events: dict[str, list[Event]] = {}
        self._keys: dict[tuple[str, str], tuple[str, str]] = {}
        self._productions: dict[str, Any] = {}
        self._reviews: dict[str, dict[str, Any]] = {}
        self._letters: dict[str, dict[str, Any]] = {}
        self._memos: dict[tuple[str, str], dict[str, Any]] = {}
        self.outbox: dict[str, Callback] = {}
        """By id; what `MemoryCallbacks` sends."""

    async def add(
        self, run: Run, drafts: Sequence[Draft], key: str, fingerprint: str, now: datetime
    ) -> tuple[Run, bool]:
        """See the port."""
        if key:
            earlier = await self.find_by_key(run.tenant, key, fingerprint)
            if earlier is not None:
                return earlier, True
            self._keys[(run.tenant, key)] = (run.id, fingerprint)
        self._productions[run.id] = run.production
        return self._write(run, drafts, now), False

    async def find_by_key(self, tenant: str, key: str, fingerprint: str) -> Run | None:
        """See the port."""
        run_id, known = self._keys.get((tenant, key), ("", fingerprint))
        if fingerprint not in (known, ""):
            raise Fault.of("idempotency_conflict", f"key {key!r} came before with another body")
        return self._read(run_id) if run_id else None

    async def save(self, run: Run, drafts: Sequence[Draft], now: datetime, desks: DeskChanges) -> Run | None:
        """See the port."""
        if self._read(run.id).revision != run.revision:
            return None
        for review in desks.reviews:
            self._reviews[review.id] = codec.review_to_document(review)
        for letter in self._all_letters():
            if letter.run_id == run.id and letter.node in desks.redriven and letter.redriven_at is None:
                closed = replace(letter, redriven_at=now, redrive_reason=desks.reason)
                self._letters[letter.id] = codec.letter_to_document(closed)
        for letter in desks.letters:
            self._letters[letter.id] = codec.letter_to_document(letter)
        for input_hash in desks.forgotten:
            self._memos.pop((run.tenant, input_hash), None)
        for memo in desks.memos:
            self._memos[(memo.tenant, memo.input_hash)] = codec.memo_to_document(memo)
        return self._write(replace(run, revision=run.revision + 1), drafts, now)

    async def catch_up(self, run: Run) -> None:
        """See the port. Nothing is ever behind here."""

    async def memo(self, tenant: str, input_hash: str, besides: str) -> Memo | None:
        """See the port."""
        document = self._memos.get((tenant, input_hash))
        return codec.memo_from_document(document) if document and document["run_id"] != besides else None

    def _read(self, run_id: str) -> Run:
        return run_from_document(self._runs[run_id], self._productions[run_id])

    def _write(self, run: Run, drafts: Sequence[Draft], now: datetime) -> Run:
        events = number(run, drafts, self._ids.ulid, now)
        self._events.setdefault(run.id, []).extend(events)
        kept = replace(run, last_sequence=run.last_sequence + len(events))
        self._runs[run.id] = run_to_document(kept)
        callback = callback_of(kept, events)
        if callback is not None:
            self.outbox[callback.id] = callback
        return kept

    async def get(self, run_id: str) -> Run | None:
        """See the port."""
        return self._read(run_id) if run_id in self._runs else None

    async def page(
        self, tenant: str, states: Sequence[RunState], label: tuple[str, str | None] | None, before: str, size: int
    ) -> list[Run]:
        """See the port."""
        found = (self._read(run_id) for run_id in sorted(self._runs, reverse=True) if not before or run_id < before)
        fitting = (run for run in found if tenant in ("", run.tenant) and (not states or run.state in states))
        return [run for run in fitting if label is None or _has(run, *label)][:size]

    async def several(self, run_ids: Sequence[str]) -> list[Run]:
        """See the port."""
        return [self._read(run_id) for run_id in sorted(run_ids) if run_id in self._runs]

    async def revisions(
        self, states: Sequence[RunState], after: str, size: int, *, productions: bool
    ) -> Mapping[str, int]:
        """See the port."""
        found = (
            run_id
            for run_id in sorted(self._runs)
            if run_id > after
            and self._runs[run_id]["state"] in states
            and productions == (self._productions[run_id] is not None)
        )
        return {run_id: self._runs[run_id]["revision"] for run_id in islice(found, size)}

    async def silent(self, before: datetime, after: str, size: int) -> Mapping[str, int]:
        """See the port."""
        found = (
            run_id
            for run_id in sorted(self._runs)
            if run_id > after
            and self._runs[run_id]["state"] in MOVING_STATES
            and self._events[run_id][-1].created_at < before
        )
        return {run_id: self._runs[run_id]["revision"] for run_id in islice(found, size)}

    async def events(self, run_id: str, after: int, size: int) -> list[Event]:
        """See the port."""
        return [event for event in self._events.get(run_id, ()) if event.sequence > after][:size]

    async def histories(
        self, since: datetime, kinds: Collection[str], size: int, most_events: int
    ) -> list[list[Event]]:
        """See the port."""
        newest: list[list[Event]] = []
        told = 0
        for run_id in sorted(self._runs, reverse=True)[:size]:
            if told < most_events:
                newest.insert(0, self._events[run_id])
            told += self._events[run_id][-1].sequence
        whole = (events for events in newest if events[0].sequence == 1 and events[0].created_at >= since)
        return [[event for event in events if event.kind in kinds] for events in whole]

    async def prune(self, before: datetime, size: int) -> int:
        """See the port."""
        old = (
            events
            for run_id, events in sorted(self._events.items())
            if self._runs[run_id]["state"] in PRUNABLE_STATES and len(events) > 1 and events[-1].created_at < before
        )
        pruned = list(islice(old, size))
        for events in pruned:
            del events[:-1]
        return len(pruned)

    async def last_sequences(self, run_ids: Sequence[str]) -> Mapping[str, int]:
        """See the port."""
        return {run_id: self._read(run_id).last_sequence for run_id in run_ids if run_id in self._runs}

    async def review(self, review_id: str) -> Review | None:
        """See the port."""
        document = self._reviews.get(review_id)
        return codec.review_from_document(document) if document is not None else None

    async def reviews(
        self, tenant: str, states: Sequence[ReviewState], run_id: str, offset: int, size: int
    ) -> list[Review]:
        """See the port."""
        every = [codec.review_from_document(document) for document in self._reviews.values()]
        fitting = [
            review
            for review in every
            if tenant in ("", review.tenant)
            and run_id in ("", review.run_id)
            and (not states or review.state in states)
        ]
        first: dict[tuple[str, str], datetime] = {}
        for review in fitting:
            cause = (review.run_id, review.question.root_cause)
            first[cause] = min(first.get(cause, review.question.opened_at), review.question.opened_at)

        def place(review: Review) -> tuple[Any, ...]:
            cause = (review.run_id, review.question.root_cause)
            rank = RANKS.index(review.question.rank)
            return rank, first[cause], cause, review.question.opened_at, review.id

        return sorted(fitting, key=place)[offset : offset + size]

    async def letter(self, letter_id: str) -> DeadLetter | None:
        """See the port."""
        document = self._letters.get(letter_id)
        return codec.letter_from_document(document) if document is not None else None

    async def letters(self, tenant: str, run_id: str, with_redriven: bool, before: str, size: int) -> list[DeadLetter]:
        """See the port."""
        newest = sorted(self._all_letters(), key=lambda letter: (letter.created_at, letter.id), reverse=True)
        fitting = [
            letter
            for letter in newest
            if tenant in ("", letter.tenant)
            and run_id in ("", letter.run_id)
            and (with_redriven or letter.redriven_at is None)
        ]
        ids = [letter.id for letter in newest]
        if before in ids:
            later = set(ids[: ids.index(before) + 1])
            fitting = [letter for letter in fitting if letter.id not in later]
        return fitting[:size]

    async def attempts_told(self, run_id: str, node: str) -> list[Mapping[str, Any]]:
        """See the port."""
        told = (event for event in self._events.get(run_id, ()) if event.kind == "attempt_finished")
        return [event.data for event in told if event.data["node"] == node]

    def _all_letters(self) -> Iterator[DeadLetter]:
        return (codec.letter_from_document(document) for document in list(self._letters.values()))


def _has(run: Run, key: str, value: str | None) -> bool:
    return key in run.labels and (value is None or run.labels[key] == value)
