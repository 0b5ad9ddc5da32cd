"""Idempotency keys of the accounts that honour them: the same request under the same key is one job and one answer.

The law: a key belongs to the first request that was *accepted* under it. The same again is answered as that was, or,
while that is at work, with 409; another request under it is 422. A refused request leaves its key free.

Answers do not outlive the process. Whether a key was used does: the ledger knows its token, and the answer is 409 then.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.responses import Response

from services.studio.domain.refusals import Reason, Refusal

IN_USE = "A request with this Idempotency-Key is being worked on."
REUSED = "This Idempotency-Key was used for another request."


@dataclass(slots=True)
class _Kept:
    """The request that holds a key, and how it was answered; None while it is at work."""

    digest: str
    outcome: Response | Refusal | None = None


class Keys:
    """The keys of all accounts. Lives on the event loop."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], _Kept] = {}

    def clear(self) -> None:
        """Forgets everything."""
        self._kept.clear()

    def answered(self, account: str, key: str, digest: str) -> Response | Refusal | None:
        """The answer of the request that holds the key; None where nobody holds it. Raises Refusal: in use, reused."""
        kept = self._kept.get((account, key))
        if kept is None:
            return None
        if kept.digest != digest:
            raise Refusal(Reason.KEY_REUSED, REUSED)
        if kept.outcome is None:
            raise Refusal(Reason.KEY_IN_USE, IN_USE)
        if isinstance(kept.outcome, Refusal):
            return kept.outcome
        head = {"content-type": kept.outcome.headers["content-type"], "idempotent-replayed": "true"}
        return Response(bytes(kept.outcome.body), kept.outcome.status_code, head)

    async def held(
        self, account: str, key: str, digest: str, work: Callable[[], Awaitable[Response]], accepted: Callable[[], bool]
    ) -> Response:
        """Does the work while holding the key, and keeps its answer if the request was accepted."""
        kept = self._kept[account, key] = _Kept(digest)
        try:
            kept.outcome = await work()
        except Refusal as refusal:
            kept.outcome = refusal
            raise
        finally:
            if not accepted():
                del self._kept[account, key]
        return kept.outcome
