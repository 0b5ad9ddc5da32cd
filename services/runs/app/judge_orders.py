"""What routing says of many orders before anything of them exists (RUN-3).

Laws of this file:
- orders that are alike are one question: a document repeats itself;
- several questions are under way at once: each may wait for prices, and a document asks thousands;
- who is away for one is not asked about the rest.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import TypeGuard

from libs.faults.fault import Fault
from services.runs.domain.run import Order
from services.runs.domain.task_view import Estimate
from services.runs.ports import Routing

ASKING_AT_ONCE = 64
Answer = Estimate | Fault | None
"""None: it was not asked about, for somebody was away."""


def is_away(answer: Answer) -> TypeGuard[Fault]:
    """Whether it says nothing of the order: another moment may mend it."""
    return isinstance(answer, Fault) and answer.retryable


async def judged(routing: Routing, tenant: str, run_id: str, orders: Sequence[Order]) -> list[Answer]:
    """What is said of each, in their order, if all are of that Run."""
    written = [repr(order) for order in orders]
    distinct = dict(zip(written, orders, strict=True))
    answers: dict[str, Answer] = {}
    left = iter(distinct.items())

    async def ask() -> None:
        for text, order in left:
            try:
                answers[text] = await routing.validate(tenant, order, run_id=run_id)
            except Fault as fault:
                answers[text] = fault
            if is_away(answers[text]):
                deque(left, maxlen=0)  # nobody asks on

    await asyncio.gather(*(ask() for _ in range(min(ASKING_AT_ONCE, len(distinct)))))
    return [answers.get(text) for text in written]
