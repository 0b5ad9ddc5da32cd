"""Pointsman over HTTP.

async with Client("http://127.0.0.1:8080", key) as pointsman:
    run = await pointsman.make("keyframe-image", {"prompt": "a market in the rain"})
    content = await pointsman.download(run.result.artifacts[0])
"""

import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Self

import msgspec

from libs.client.door import Door
from libs.client.events import EventReader
from libs.client.faults import PointsmanError, Problem, RunUnsuccessful, Unreachable
from libs.client.retrying import Patience, Safety
from libs.client.sending import Means, Tries, patiently
from libs.client.shapes import (
    Amount,
    Artifact,
    CallResult,
    DeadLetter,
    Event,
    Model,
    Redriven,
    Review,
    Run,
    Steered,
)

HEARTBEATS_S = 45.0
"""A stream that is silent for three heartbeats is broken."""
JOIN_S = 30
MARGIN_S = 15.0
LONGEST_CALL_S = 3600.0
ENDS = frozenset("run_completed run_failed run_timed_out run_cancelled run_dead_lettered run_paused".split())
"""Kinds of event behind which the server closes a stream; one of a later release is found out by asking once more."""
JOINING = frozenset({"join_timeout"})
PAGE = 1000


class _Models(msgspec.Struct):
    data: list[Model]


class _Reviews(msgspec.Struct):
    reviews: list[Review]
    next_page_token: str = ""


class _DeadLetters(msgspec.Struct):
    dead_letters: list[DeadLetter]
    next_page_token: str = ""


class Client:
    """One server and one key. Use inside `async with`.

    Faults: Problem (the server refused), Unreachable (nobody answered, after all tries), RunUnsuccessful.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        patience: Patience | None = None,
        means: Means | None = None,
        new_key: Callable[[], str] = lambda: uuid.uuid4().hex,
    ) -> None:
        self._door = Door(url, key)
        self._patience = patience or Patience()
        self._means = means or Means()
        self._new_key = new_key

    async def __aenter__(self) -> Self:
        await self._door.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._door.__aexit__()

    async def _sent(
        self, kind: Any, method: str, path: str, safety: Safety = Safety.SAFE, final: Any = frozenset(), **given: Any
    ) -> Any:
        return await patiently(
            lambda: self._door.shape(kind, method, path, **given), safety, self._patience, self._means, final=final
        )

    # --- Runs ---------------------------------------------------------------------------------------------------------

    async def create_run(
        self,
        model: str,
        input: Mapping[str, Any],
        *,
        options: Mapping[str, Any] | None = None,
        labels: Mapping[str, str] | None = None,
        idempotency_key: str = "",
    ) -> Run:
        """A new Run, at work. It is one Run however often the request has to be sent: key and body stay the same."""
        body = msgspec.json.encode({"model": model, "input": input, "options": options or {}, "labels": labels or {}})
        headers = {"Idempotency-Key": idempotency_key or self._new_key()}
        run: Run = await self._sent(Run, "POST", "/v1/runs", body=body, headers=headers)
        return run

    async def create_production(
        self, document: Mapping[str, Any], *, labels: Mapping[str, str] | None = None, idempotency_key: str = ""
    ) -> Run:
        """A new Run of a whole production document, its own `production` field included; one Run, as `create_run`."""
        body = msgspec.json.encode({"production": document, "labels": labels or {}})
        headers = {"Idempotency-Key": idempotency_key or self._new_key()}
        run: Run = await self._sent(Run, "POST", "/v1/runs", body=body, headers=headers)
        return run

    async def get_run(self, run_id: str) -> Run:
        """The Run now."""
        run: Run = await self._sent(Run, "GET", f"/v1/runs/{run_id}")
        return run

    async def cancel_run(self, run_id: str, reason: str = "") -> Run:
        """Ask for its end. Asking twice is asking once."""
        body = msgspec.json.encode({"reason": reason} if reason else {})
        run: Run = await self._sent(Run, "POST", f"/v1/runs/{run_id}/cancel", body=body)
        return run

    async def cancel_by_key(self, idempotency_key: str, reason: str = "") -> Run:
        """Ask for the end of the Run that came of a key, where its id is not known."""
        body = msgspec.json.encode({"idempotency_key": idempotency_key} | ({"reason": reason} if reason else {}))
        run: Run = await self._sent(Run, "POST", "/v1/runs:cancelByKey", body=body)
        return run

    async def finished(self, run_id: str) -> Run:
        """The Run at rest, however it ended. Waits for as long as it takes; a wait that runs out is no failure."""
        path, query = f"/v1/runs/{run_id}/join", {"timeout_s": str(JOIN_S)}
        while True:
            try:
                run: Run = await self._sent(Run, "GET", path, final=JOINING, query=query, read_s=JOIN_S + MARGIN_S)
            except Problem as problem:
                if problem.code not in JOINING:
                    raise
            else:
                return run

    async def result_of(self, run_id: str) -> Run:
        """The Run with its result. RunUnsuccessful if it came to rest in any other state."""
        run = await self.finished(run_id)
        if run.status != "succeeded":
            raise RunUnsuccessful(run)
        return run

    async def make(self, model: str, input: Mapping[str, Any], **more: Any) -> Run:
        """Create a Run and wait for its result; `more` as for `create_run`."""
        return await self.result_of((await self.create_run(model, input, **more)).id)

    async def events(self, run_id: str, after: int = 0) -> AsyncIterator[Event]:
        """The events of a Run behind a sequence, each once and in order, until the Run rests.

        A stream that breaks is resumed behind the last event that came; patience starts anew with every event.
        """
        tries = Tries(self._patience, self._means)
        while True:
            reader = EventReader()
            try:
                async with aclosing(self._stream(run_id, after, reader)) as events:
                    async for event in events:
                        if event is None:
                            return
                        if event.sequence > after:
                            after = event.sequence
                            tries.progress()
                            yield event
                            if event.kind in ENDS:
                                return
                raise Unreachable("the stream ended before the run came to rest")
            except PointsmanError as error:
                await tries.after(error, Safety.SAFE, reader.retry_s or 0.0)

    async def _stream(self, run_id: str, after: int, reader: EventReader) -> AsyncGenerator[Event | None, None]:
        """One connection's events; None where there is nothing newer and never will be."""
        headers = {"Last-Event-ID": str(after)}
        path = f"/v1/runs/{run_id}/stream"
        async with self._door.asked("GET", path, headers=headers, read_s=HEARTBEATS_S) as response:
            if response.status == 204:
                yield None
                return
            try:
                async for chunk in response.content.iter_any():
                    for event in reader.feed(chunk):
                        yield event
            except msgspec.MsgspecError as error:
                raise Unreachable("the stream holds what is no event") from error

    # --- Commands on a Run: each has an id, so that sending it again is the same command ------------------------------

    async def _commanded(
        self, kind: Any, run_id: str, verb: str, told: Mapping[str, Any], idempotency_key: str = ""
    ) -> Any:
        body = msgspec.json.encode({name: value for name, value in told.items() if value not in ("", None)})
        headers = {"Idempotency-Key": idempotency_key or self._new_key()}
        return await self._sent(kind, "POST", f"/v1/runs/{run_id}/{verb}", body=body, headers=headers)

    async def pause_run(self, run_id: str, reason: str = "", *, idempotency_key: str = "") -> Run:
        """Hold it: nothing new is submitted from now on; what providers have is followed."""
        run: Run = await self._commanded(Run, run_id, "pause", {"reason": reason}, idempotency_key)
        return run

    async def resume_run(self, run_id: str, reason: str = "", *, idempotency_key: str = "") -> Run:
        """Let a paused Run go on."""
        run: Run = await self._commanded(Run, run_id, "resume", {"reason": reason}, idempotency_key)
        return run

    async def steer_run(self, run_id: str, kind: str, data: Mapping[str, Any], *, idempotency_key: str = "") -> Steered:
        """Give it an input of that kind: `text` in `data` is appended to the declared field, `value` replaces it."""
        told = {"kind": kind, "data": data}
        steered: Steered = await self._commanded(Steered, run_id, "steer", told, idempotency_key)
        return steered

    async def redrive_run(
        self,
        run_id: str,
        node: str = "",
        *,
        reason: str = "",
        input: Mapping[str, Any] | None = None,
        supply: str = "",
        idempotency_key: str = "",
    ) -> Run:
        """Run a node again, or without one every node that failed, with the fields of its input that change."""
        told = {"node": node, "reason": reason, "input": input, "supply": supply}
        run: Run = await self._commanded(Run, run_id, "redrive", told, idempotency_key)
        return run

    async def preview_redrive(
        self, run_id: str, node: str = "", *, input: Mapping[str, Any] | None = None, supply: str = ""
    ) -> Redriven:
        """What that redrive would reach and may cost; nothing runs."""
        told = {"node": node, "input": input, "supply": supply}
        reached: Redriven = await self._commanded(Redriven, run_id, "redrive/preview", told)
        return reached

    # --- People's desks: for operators --------------------------------------------------------------------------------

    async def reviews(self, *, run_id: str = "", tenant: str = "", statuses: Sequence[str] = ()) -> list[Review]:
        """Questions to people in the order in which they should be looked at; without `statuses`, those that wait."""
        query = _query(run=run_id, tenant=tenant, status=",".join(statuses))
        return [item async for page in self._pages(_Reviews, "reviews", query) for item in page.reviews]

    async def review(self, review_id: str) -> Review:
        """One review, whatever became of it."""
        review: Review = await self._sent(Review, "GET", f"/v1/operator/reviews/{review_id}")
        return review

    async def claim_review(self, review_id: str, who: str = "") -> Review:
        """Take a review to look at, or hand it to somebody."""
        return await self._reviewed(review_id, "claim", {"who": who} if who else {})

    async def decide_review(
        self,
        review_id: str,
        decision: str,
        *,
        comment: str = "",
        input: Mapping[str, Any] | None = None,
        supply: str = "",
        budget: Amount | None = None,
        attempts: int = 0,
        review_minutes: int = 0,
        subject_hash: str = "",
    ) -> Review:
        """Decide it, once; the same decision again is the same. With `subject_hash`, only if it is still about that.

        With raise_budget one of `budget`, `attempts`, `review_minutes` is the new hard limit.
        """
        told = {"decision": decision, "comment": comment, "supply": supply, "subject_hash": subject_hash}
        body = {name: value for name, value in told.items() if value}
        counts = {"attempts": attempts, "review_minutes": review_minutes}
        limit = budget or {name: count for name, count in counts.items() if count}
        more = {name: value for name, value in (("input", input), ("budget", limit)) if value}
        return await self._reviewed(review_id, "decide", {**body, **more})

    async def _reviewed(self, review_id: str, verb: str, told: Mapping[str, Any]) -> Review:
        path = f"/v1/operator/reviews/{review_id}/{verb}"
        review: Review = await self._sent(Review, "POST", path, body=msgspec.json.encode(told))
        return review

    async def dead_letters(
        self, *, run_id: str = "", tenant: str = "", with_redriven: bool = False
    ) -> list[DeadLetter]:
        """Case files of nodes that ended without a result, newest first."""
        query = _query(run=run_id, tenant=tenant, redriven="true" if with_redriven else "")
        return [item async for page in self._pages(_DeadLetters, "dead-letters", query) for item in page.dead_letters]

    async def dead_letter(self, letter_id: str) -> DeadLetter:
        """One case file."""
        letter: DeadLetter = await self._sent(DeadLetter, "GET", f"/v1/operator/dead-letters/{letter_id}")
        return letter

    async def _pages(self, kind: Any, name: str, query: Mapping[str, str]) -> AsyncIterator[Any]:
        token = ""
        while True:
            asked = {**query, "page_size": str(PAGE), **_query(page_token=token)}
            page = await self._sent(kind, "GET", f"/v1/operator/{name}", query=asked)
            yield page
            token = page.next_page_token
            if not token:
                return

    # --- Synchronous calls --------------------------------------------------------------------------------------------

    async def invoke(
        self, model: str, input: Mapping[str, Any], *, options: Mapping[str, Any] | None = None
    ) -> CallResult:
        """Serve one request at once. It is sent again only where the refusal proves that nothing was made."""
        body = msgspec.json.encode({"model": model, "input": input, "options": options or {}})
        result: CallResult = await self._sent(
            CallResult, "POST", "/v1/invoke", Safety.UNSAFE, body=body, read_s=LONGEST_CALL_S + MARGIN_S
        )
        return result

    # --- Files and models ---------------------------------------------------------------------------------------------

    async def upload(self, content: bytes, media_type: str) -> Artifact:
        """Keep bytes; they are named by their digest, so sending them twice keeps them once."""
        artifact: Artifact = await self._sent(Artifact, "POST", "/v1/artifacts", body=content, media_type=media_type)
        return artifact

    async def download(self, artifact: Artifact) -> bytes:
        """All bytes of an artifact."""

        async def read() -> bytes:
            async with self._door.asked("GET", artifact.url) as response:
                return bytes(await response.read())

        return await patiently(read, Safety.SAFE, self._patience, self._means)

    async def models(self) -> list[Model]:
        """What the key may use."""
        found: _Models = await self._sent(_Models, "GET", "/v1/models")
        return found.data


def _query(**given: str) -> dict[str, str]:
    """What was said."""
    return {name: value for name, value in given.items() if value}
