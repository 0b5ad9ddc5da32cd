"""Runs of a tenant, newest first."""

from collections.abc import Sequence

from libs.faults.fault import Fault
from services.runs.domain.run import Run, RunState
from services.runs.ports import Runs

ULID_LENGTH = 26


async def list_runs(
    runs: Runs, tenant: str, states: Sequence[RunState], label: str, token: str, size: int
) -> tuple[list[Run], str]:
    """(the page, the token of the next one or "").

    `label` is `key=value`, `key`, or "" for all. Fault malformed_request for a token that no page gave.
    """
    if token and not (len(token) == ULID_LENGTH and token.isalnum()):
        raise Fault.of("malformed_request", "page_token is none that a page gave; begin without it")
    key, equals, value = label.partition("=")
    wanted = (key, value if equals else None) if label else None
    page = await runs.page(tenant, states, wanted, token, size + 1)
    return page[:size], page[size - 1].id if len(page) > size else ""
