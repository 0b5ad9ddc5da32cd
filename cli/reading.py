"""Reading a run: that of the key's own tenant, or, with an operator's key, of any."""

from typing import Any
from urllib.parse import quote

from cli.api import Api, Problem

ABSENT = ("not_found", "forbidden")
"""Codes under which another route may show what is asked for: each wants a scope of its own."""


async def read_run(api: Api, run_id: str, below: str = "", **query: Any) -> dict[str, Any]:
    """The run, or what is `below` it, such as `/events`. Problem in the words of the route that this key may use."""
    path = f"{quote(run_id, safe='')}{below}"
    try:
        return await api.get(f"/v1/runs/{path}", **query)
    except Problem as own:
        if own.code not in ABSENT:
            raise
        try:
            return await api.get(f"/v1/operator/runs/{path}", **query)
        except Problem as any_tenant:
            if any_tenant.code == "forbidden":
                raise own from any_tenant
            raise
