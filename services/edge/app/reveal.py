"""Which tenant may read which artifact (AUTH-1).

A blob has no owner: equal bytes are one blob, whoever brought them. So the edge keeps who may read it, and a row is
written in two places only: when a tenant brings bytes, and when an answer of the edge, or of the public gRPC port,
shows a tenant an artifact of its own Run, Task or call, before that answer leaves. Whoever knows a digest in any other
way is told `not_found`. Of events over gRPC this holds once the Run has been read.
"""

from collections.abc import Iterable

from libs.kernel.clock import Clock
from services.edge.app.authenticate import Caller
from services.edge.domain import shapes
from services.edge.domain.orders import DIGEST
from services.edge.ports import Owners

MOST_CACHED = 50_000


class Reveal:
    """Grants and checks. Grants already written by this process are remembered: polls of one Run write once."""

    def __init__(self, owners: Owners, clock: Clock) -> None:
        self._owners = owners
        self._clock = clock
        self._granted: set[tuple[str, str]] = set()

    async def grant(self, tenant: str, digests: Iterable[str]) -> None:
        """Let the tenant read these from now on."""
        fresh = {(tenant, digest) for digest in digests} - self._granted
        if not fresh:
            return
        await self._owners.add(tenant, sorted(digest for _, digest in fresh), self._clock.now())
        if len(self._granted) > MOST_CACHED:
            self._granted.clear()
        self._granted |= fresh

    async def run(self, tenant: str, *runs: shapes.Run) -> None:
        """The tenant is about to see these Runs of its own."""
        await self.grant(tenant, {digest for run in runs for digest in _of_run(run)})

    async def events(self, tenant: str, events: Iterable[shapes.RunEvent]) -> None:
        """The tenant is about to see these events of a Run of its own."""
        await self.grant(tenant, {digest for event in events for digest in _of_event(event)})

    async def may_read(self, caller: Caller, digest: str) -> bool:
        """Whether the caller may read the artifact; operators may read all."""
        known = (caller.tenant, digest) in self._granted
        return known or caller.operator or await self._owners.owns(caller.tenant, digest)


def _of_run(run: shapes.Run) -> set[str]:
    found = {artifact.sha256 for node in run.nodes for artifact in node.artifacts}
    return found | {artifact.sha256 for artifact in (run.result.artifacts if run.result else ())}


def _of_event(event: shapes.RunEvent) -> set[str]:
    """Digests in the places where runs itself puts them; what callers wrote (labels) proves nothing."""
    if event.kind == "artifact_written":
        told = [event.data.get("sha256")]
    elif event.kind == "node_completed":
        told = event.data.get("artifacts") or []
    else:
        told = []
    return {digest for digest in told if isinstance(digest, str) and DIGEST.fullmatch(digest)}
