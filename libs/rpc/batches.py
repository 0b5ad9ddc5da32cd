"""Calls about many things at once: each as if alone, a fault that of the first that has one."""

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from typing import TypeVar

from libs.faults.fault import Fault

Answer = TypeVar("Answer")
BATCH_MAX = 256
EVERYBODYS = frozenset(
    {"governance_backend_down", "peer_unavailable", "deadline_exceeded", "overloaded", "cancelled", "unimplemented"}
)


async def each(asked: Iterable[Awaitable[Answer]]) -> list[Answer]:
    """The answers in their order, once all are there. Raises the first fault, when none is under way any more."""
    answers = await asyncio.gather(*asked, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return answers  # type: ignore[return-value]  # none of them is an exception


def check_size(items: Sequence[object], field: str) -> None:
    """Fault `validation_failed` for more than a call may be about."""
    if len(items) > BATCH_MAX:
        raise Fault.invalid((f"/{field}", f"must be at most {BATCH_MAX}, not {len(items)}"))


def is_everybodys(error: Exception) -> bool:
    """Whether it befell the call and not one of the things that it was about: nobody asks one by one then."""
    return isinstance(error, Fault) and error.code in EVERYBODYS
