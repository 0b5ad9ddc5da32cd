"""Runs of a tenant, or of all, newest first."""

from collections.abc import Sequence

from libs.rpc.paging import id_in
from services.runs.domain.run import Run, RunState
from services.runs.ports import Runs

MOST_NODES = 10_000
"""On a page of several Runs: a production has up to two thousand, and a thousand such Runs would fill the memory."""
AT_ONCE = 50


async def list_runs(
    runs: Runs, tenant: str, states: Sequence[RunState], label: str, token: str, size: int
) -> tuple[list[Run], str]:
    """(the page, the token of the next one or ""). A page ends before `size` where its Runs have `MOST_NODES` nodes.

    An empty tenant is all of them. `label` is `key=value`, `key`, or "" for all. Fault malformed_request for a token
    that no page gave.
    """
    token = id_in(token)
    key, equals, value = label.partition("=")
    wanted = (key, value if equals else None) if label else None
    found: list[Run] = []
    nodes = 0
    while True:
        asked = min(AT_ONCE, size + 1 - len(found))
        some = await runs.page(tenant, states, wanted, found[-1].id if found else token, asked)
        for run in some:
            nodes += len(run.nodes)
            if len(found) == size or (found and nodes > MOST_NODES):
                return found, found[-1].id
            found.append(run)
        if len(some) < asked:
            return found, ""
