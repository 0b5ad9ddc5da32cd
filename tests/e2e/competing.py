"""A crowd of Runs for few slots, and the judges of what came of it: the providers' own books and counts."""

import asyncio
import os
from collections.abc import Sequence
from typing import Any

from aiohttp import ClientError

from tests.e2e.scenery import PARTS
from tests.support import books
from tests.support.stack import Stack
from tests.support.visitor import FIXED, Answer, Visitor, gap_free, until

DRILL = bool(os.environ.get("POINTSMAN_DRILLS"))
"""The large size, for `make drills`; CI plays the small one."""

CROWD = ("five", "three", "narrow", "single")
SLOTS = sum(min(PARTS[part].slots, PARTS[part].channel_slots) for part in CROWD)
SETTLED_S = 45.0


async def insist(doors: Sequence[Visitor], name: str) -> str:
    """Create a Run as a good client does: with one key, at the next door, until it is taken."""
    body = {"model": "crowd", "input": {"prompt": name, **FIXED}}
    headers = {"Idempotency-Key": name.replace(" ", "-")}
    turn = iter(range(1_000_000))

    async def knock() -> Answer | None:
        try:
            return await doors[next(turn) % len(doors)].ask("POST", "/v1/runs", json=body, headers=headers)
        except ClientError:  # nobody is behind that door any more
            return None

    def is_taken(answer: Answer | None) -> bool:
        if answer is not None and answer.status != 202:
            assert (answer.status, answer.json["retryable"]) == (503, True), answer.body
        return answer is not None and answer.status == 202

    taken = await until(knock, is_taken, SETTLED_S)
    assert taken is not None
    return str(taken.json["id"])


async def crowd(doors: Sequence[Visitor], title: str, count: int) -> list[str]:
    """That many Runs at once, the doors in turn."""
    turned = [doors[number % len(doors) :] + doors[: number % len(doors)] for number in range(count)]
    return list(await asyncio.gather(*(insist(turn, f"{title} {number}") for number, turn in enumerate(turned))))


async def judged(stack: Stack, runs: list[str], within_s: float) -> None:
    """Every Run was delivered once, nothing was sent twice, and no provider ever saw more jobs than its slots."""
    done: list[dict[str, Any]] = await stack.api.all_finished(runs, within_s=within_s)
    for run in done:
        assert run["status"] == "succeeded", run
        gap_free(await stack.api.events_of(run["id"]))
    assert {run["id"] for run in await books.every_run(stack.api)} == set(runs)
    most = {part: (await stack.lab.get(f"/lab/accounts/{part}"))["most_at_once"]["account"] for part in CROWD}
    allowed = {part: min(PARTS[part].slots, PARTS[part].channel_slots) for part in CROWD}
    assert all(most[part] <= allowed[part] for part in CROWD), (most, allowed)
    assert sum(most.values()) > SLOTS / 2, "they competed"
    await books.agree(stack)
