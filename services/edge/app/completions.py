"""The streamed completions of this process: none is cut off without a word when it has to stop (SYN-8, OPS-4)."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class Completions:
    """Those under way. Once `over`, what still goes on has been told so, and nothing new should begin."""

    def __init__(self) -> None:
        self.over = False
        self._serving: set[asyncio.Task[object]] = set()

    @contextmanager
    def serving(self) -> Iterator[None]:
        """While inside, this task serves one; it is cancelled when they are over."""
        task = asyncio.current_task()
        assert task is not None, "streams are served by tasks"
        self._serving.add(task)
        try:
            yield
        finally:
            self._serving.discard(task)

    def end(self) -> None:
        """Let each say that it is over, and end."""
        self.over = True
        for task in tuple(self._serving):
            task.cancel()
