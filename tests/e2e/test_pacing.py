"""A provider that says "too much", with a time and without one, seen through the public capacity view."""

from datetime import datetime
from typing import Any

from tests.e2e.conftest import layout
from tests.support.stack import Stack
from tests.support.visitor import until

pytestmark = layout("all-in-one", alone=True)

FOR_EVER_S = 3600.0
FAST_S = 0.2
HELD, BURST = 4, 4


async def paced(stack: Stack) -> dict[str, Any]:
    """What the view says of the Supply."""
    return await stack.api.capacity_of("supplies", "paced/clip")


async def held(stack: Stack, count: int) -> list[str]:
    """Jobs that run until their account is told to be fast again."""
    await stack.lab.account("paced", render_s=FOR_EVER_S)
    runs = [await stack.api.post_run("paced", f"held {number}") for number in range(count)]
    await until(lambda: paced(stack), lambda line: line["in_use"] == count)
    return runs


async def refused(stack: Stack, *names: str) -> None:
    """Runs of one Attempt each, all refused for load; they have all begun before the first of them is."""
    await stack.lab.script("paced", {"slow_s": 3.0, "status": 429}, repeat=len(names), prompt_contains=names[0][:5])
    runs = [await stack.api.post_run("paced-once", name) for name in names]
    errors = [run["error"]["code"] for run in await stack.api.all_finished(runs)]
    assert errors == ["rate_limited"] * len(names)


async def test_retry_after_freezes_and_cuts_nothing(stack: Stack) -> None:
    """CAP-7, ATT-10, ATT-3a: the provider's own time holds for every Task, is told as the reason, and is waited for."""
    await stack.lab.script("paced", {"status": 429, "retry_after": 4}, prompt_contains="first")
    first = await stack.api.post_run("paced", "first of two")
    frozen = await until(lambda: paced(stack), lambda line: line["frozen_until"])
    assert (frozen["adaptive"], frozen["effective"]) == (None, 8)
    second = await stack.api.post_run("paced", "behind it")
    reason = await until(lambda: stack.api.waiting_reason(second), lambda text: text and text.startswith("capacity: "))
    assert reason is not None
    assert reason.startswith("capacity: supply paced/clip frozen until ")
    assert reason.endswith("its provider asked not to be asked before")
    assert {run["status"] for run in await stack.api.all_finished([first, second])} == {"succeeded"}
    (attempt,) = (await stack.api.task_of(second))["attempts"]
    assert datetime.fromisoformat(attempt["submitted_at"]) >= datetime.fromisoformat(frozen["frozen_until"])


async def test_a_burst_cuts_once_and_success_raises(stack: Stack) -> None:
    """CAP-7, CAP-4: four 429s of one burst cut to seven tenths of the eight slots in use, once; the next epoch cuts
    again; work that succeeds while at least half of the slots is in use brings them back, one success a share."""
    runs = await held(stack, HELD)
    await refused(stack, *(f"burst {number}" for number in range(BURST)))
    cut = await until(lambda: paced(stack), lambda line: line["in_use"] == HELD)
    assert (cut["configured"], cut["adaptive"], cut["effective"]) == (8, 5, 5)
    await refused(stack, "again and again")
    cut = await until(lambda: paced(stack), lambda line: line["in_use"] == HELD)
    assert (cut["adaptive"], cut["effective"]) == (3, 3)
    waiting = await stack.api.post_run("paced", "no room for it")
    reason = await until(lambda: stack.api.waiting_reason(waiting), lambda text: text and text.startswith("capacity: "))
    assert reason is not None
    assert reason.startswith("capacity: supply paced/clip adaptive 4 of 3: its provider was congested")
    await stack.lab.account("paced", render_s=FAST_S)
    assert {run["status"] for run in await stack.api.all_finished([*runs, waiting])} == {"succeeded"}
    runs = await held(stack, 3)
    await stack.lab.account("paced", render_s=FAST_S)
    assert {run["status"] for run in await stack.api.all_finished(runs)} == {"succeeded"}
    raised = await until(lambda: paced(stack), lambda line: line["in_use"] == 0)
    assert (raised["adaptive"], raised["effective"]) == (4, 4)
