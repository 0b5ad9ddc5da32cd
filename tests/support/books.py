"""Our books next to the providers': the judge of double submission (VER-7)."""

from collections import Counter
from typing import Any

from tests.support.stack import Stack
from tests.support.visitor import RESTING, Visitor, until


async def every_run(api: Visitor) -> list[dict[str, Any]]:
    """All Runs of the key's tenant, page by page."""
    runs: list[dict[str, Any]] = []
    token = ""
    while True:
        page = await api.get("/v1/runs", page_size=1000, **({"page_token": token} if token else {}))
        runs += page["runs"]
        token = page["next_page_token"]
        if not token:
            return runs


async def attempts_of(stack: Stack) -> list[dict[str, Any]]:
    """Every Attempt of every tenant that has Runs here."""
    found = []
    for key in stack.keys:
        async with stack.as_holder(key) as holder:
            for run in await every_run(holder):
                found += (await holder.task_of(run["id"]))["attempts"] if run["nodes"][0]["task_id"] else []
    return found


async def agree(stack: Stack) -> None:
    """Everything rests; each job that a provider accepted is one Attempt of ours and the other way round; nothing was
    sent twice; no slot is held."""
    for key in stack.keys:
        async with stack.as_holder(key) as holder:
            await until(lambda: every_run(holder), lambda runs: all(run["status"] in RESTING for run in runs), 30)
    ledger = await stack.lab.ledger()
    theirs = Counter(job["client_token"] for job in ledger["submissions"])
    ours = Counter(item["client_token"] for item in await attempts_of(stack) if item["accepted_at"])
    assert ours == theirs
    assert set(theirs.values()) <= {1}
    assert ledger["posts"]["repeated"] == {}
    await until(stack.api.slots, lambda slots: not any(slots.values()), 30)  # longer than a lost slot's time to live
