"""Pages of Runs."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from services.runs.app.list_runs import AT_ONCE, MOST_NODES, list_runs
from services.runs.domain.run import Node, Order, Run, RunState

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Kept:
    """Runs of a store, newest first, with so many nodes each; `looks` are the sizes that it was asked for."""

    def __init__(self, nodes: Sequence[int]) -> None:
        self.runs = [
            Run(f"{number:026}", "a", RunState.RUNNING, Order("m", {}), _nodes(count), NOW)
            for number, count in reversed(list(enumerate(nodes)))
        ]
        self.looks: list[int] = []

    async def page(self, tenant: str, states: Any, label: Any, before: str, size: int) -> list[Run]:
        """See the port."""
        self.looks.append(size)
        return [run for run in self.runs if not before or run.id < before][:size]


def _nodes(count: int) -> dict[str, Node]:
    return {str(number): Node(str(number), "generate") for number in range(count)}


async def pages(kept: Any, size: int) -> list[int]:
    """How many Runs each page has until the last; together they are all, in order."""
    seen: list[Run] = []
    lengths: list[int] = []
    token = ""
    while True:
        page, token = await list_runs(kept, "a", [], "", token, size)
        seen += page
        lengths.append(len(page))
        if not token:
            assert seen == kept.runs
            return lengths


@pytest.mark.parametrize(
    "runs, size, lengths",
    [(0, 3, [0]), (3, 3, [3]), (4, 3, [3, 1]), (AT_ONCE, AT_ONCE, [AT_ONCE]), (2 * AT_ONCE + 1, 1000, [101])],
)
async def test_small_runs_fill_their_page(runs: int, size: int, lengths: list[int]) -> None:
    """EDG-3: a page has as many Runs as were asked for, where there are so many."""
    assert await pages(Kept([1] * runs), size) == lengths


async def test_a_page_of_productions_is_bounded() -> None:
    """EDG-3: many large productions come on several pages, and no look into the store takes all; none is left out."""
    kept = Kept([MOST_NODES // 4] * 9)
    assert await pages(kept, 1000) == [4, 4, 1]
    assert max(kept.looks) == AT_ONCE
    assert await pages(Kept([MOST_NODES + 1, 1, MOST_NODES + 1]), 1000) == [1, 1, 1], (
        "the first is told whatever it has"
    )
