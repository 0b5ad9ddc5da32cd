"""A run followed on the terminal."""

import asyncio
from typing import Any

from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from cli import output
from cli.api import Api, Unreachable

RESTING = frozenset({"succeeded", "failed", "timed_out", "cancelled", "dead_letter", "paused"})
RECONNECT_S = 1.0
RECONNECTS = 30


async def follow(api: Api, run_id: str, *, quiet: bool = False) -> dict[str, Any]:
    """The Run once it rests.

    Shows its events as they come on a terminal, unless `quiet`; a broken stream is resumed where it broke.
    """
    quiet = quiet or not output.errors.is_terminal
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=output.errors, disable=quiet, transient=True) as progress:
        bar = progress.add_task(f"run {run_id}", total=None)
        after, breaks = 0, 0
        while True:
            try:
                async for event in api.events(run_id, after):
                    after, breaks = event["sequence"], 0
                    progress.update(bar, description=f"run {run_id}: {describe(event)}")
                found = await api.get(f"/v1/runs/{run_id}")
                if found["status"] in RESTING:
                    return found
            except Unreachable:
                breaks += 1
                if breaks > RECONNECTS:
                    raise
                progress.update(bar, description=f"run {run_id}: the server does not answer, trying again")
            await asyncio.sleep(RECONNECT_S)


def describe(event: dict[str, Any]) -> str:
    """One event in a few words; unknown kinds by their name."""
    data = event["data"]
    match event["kind"]:
        case "attempt_started":
            return f"attempt {data['number']} on {data['supply']}"
        case "attempt_finished":
            error = (data.get("error") or {}).get("code")
            return f"attempt {data['number']} {data['state']}" + (f" ({error})" if error else "")
        case "node_waiting":
            return f"waits: {data['reason']}"
        case kind:
            return str(kind).replace("_", " ")
