"""The back room: takes accepted tasks through queued and running to their end.

A task waits in its account's line until the account's `queue_s` has passed, it is first in line and a running place is
free. It is then rendered for real, and ends no sooner than `render_s` after it started. A restart takes up every
unfinished task: the queued wait on, the running are rendered again and keep their start.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from services.studio.archive import moved
from services.studio.desk import Desk
from services.studio.dialects import ark
from services.studio.domain import jobs
from services.studio.domain.accounts import Account
from services.studio.domain.jobs import Failure, ImageJob, Task
from services.studio.domain.prices import video_tokens
from services.studio.domain.refusals import Reason
from services.studio.media import clips, films, pictures
from services.studio.media.ffmpeg import RenderError

log = logging.getLogger(__name__)
INTERNAL = Failure(ark.CODES[Reason.INTERNAL][1], ark.MESSAGES[Reason.INTERNAL])


class Renders:
    """Owns one asyncio task per unfinished job. `start` resumes, `stop` lets go without changing any record."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._workers = asyncio.Semaphore(desk.config.render.workers)
        self._lines: dict[str, deque[str]] = {account: deque() for account in desk.accounts}
        self._changed: dict[str, asyncio.Condition] = {account: asyncio.Condition() for account in desk.accounts}
        self._running: Counter[str] = Counter()
        self._lives: dict[str, asyncio.Task[None]] = {}

    def start(self) -> None:
        """Takes up what a former process left unfinished."""
        self._desk.archive.abandon_sync(self._desk.now())
        for task in self._desk.archive.unfinished():
            if task.account in self._desk.accounts:
                self._desk.hold_slot(task.account, task.model)
                self.take(task)

    async def stop(self) -> None:
        """Cancels all work under way; the records stay as they are."""
        lives = list(self._lives.values())
        for life in lives:
            life.cancel()
        await asyncio.gather(*lives, return_exceptions=True)

    def take(self, task: Task) -> None:
        """Starts the life of an accepted task; its slot is freed at the end."""
        if task.status == jobs.QUEUED:
            self._lines[task.account].append(task.id)
        else:
            self._running[task.account] += 1
        self._lives[task.id] = asyncio.create_task(self._live(task), name=f"studio-task-{task.id}")

    async def cancel(self, task: Task) -> None:
        """Ends a queued or running task as cancelled."""
        self._desk.archive.save(moved(task, jobs.CANCELLED, self._desk.now()))
        life = self._lives.get(task.id)
        if life is not None:
            life.cancel()
            await asyncio.gather(life, return_exceptions=True)

    async def changed(self, account_id: str) -> None:
        """Wakes the account's tasks after its settings changed."""
        async with self._changed[account_id]:
            self._changed[account_id].notify_all()

    async def _live(self, task: Task) -> None:
        running = task.status == jobs.RUNNING
        try:
            if not running:
                begun = await self._queue(task)
                if begun is None:
                    return
                task, running = begun, True
                await self.changed(task.account)
            await self._run(task)
        except Exception:
            log.exception("task %s failed in the studio", task.id)
            self._end(task, jobs.FAILED, error=INTERNAL)
        finally:
            self._leave(task, running)
            await self.changed(task.account)

    def _leave(self, task: Task, running: bool) -> None:
        if running:
            self._running[task.account] -= 1
        line = self._lines[task.account]
        if task.id in line:
            line.remove(task.id)
        self._desk.free_slot(task.account, task.model)
        self._lives.pop(task.id, None)

    async def _queue(self, task: Task) -> Task | None:
        """Waits for a running place; gives the running task, or None when it expired in the queue."""

        def due(account: Account) -> float:
            return task.created_at + account.queue_s / account.speed

        def free(account: Account) -> bool:
            first = self._lines[account.id][0] == task.id
            return first and (task.expire or self._running[account.id] < account.running)

        expires_at = task.created_at + task.job.expires_after_s
        in_time = await self._until(task.account, due, free, expires_at)
        if task.expire or not in_time:
            self._end(task, jobs.EXPIRED)
            return None
        self._lines[task.account].popleft()
        self._running[task.account] += 1
        begun = moved(task, jobs.RUNNING, self._desk.now())
        self._desk.archive.save(begun)
        return begun

    async def _run(self, task: Task) -> None:
        started_at = task.updated_at
        error = task.fate
        if error is None:
            error = await self._render(task)
        await self._until(task.account, lambda account: started_at + account.render_s / account.speed)
        if error is not None:
            self._end(task, jobs.FAILED, error=error, charge=self._desk.accounts[task.account].charges_on_failure)
            return
        files, usage = _outcome(task)
        self._end(replace(task, files=files, usage=usage), jobs.SUCCEEDED, charge=True)

    async def _render(self, task: Task) -> Failure | None:
        if task.pictures is not None:
            return await self._draw(task, task.pictures)
        target = self._desk.files / f"{task.id}.mp4"
        account = self._desk.accounts[task.account]
        clip = clips.Clip(
            job=task.job,
            style=account.style,
            signature=f"{account.id} · {task.model.removeprefix('doubao-')}",
            render=self._desk.config.render,
            inputs=self._desk.inputs,
            target=target,
        )
        async with self._workers:
            try:
                if task.job.film is not None:
                    await films.make(task.job.film, self._desk.inputs, target)
                else:
                    await clips.make(clip)
            except (RenderError, OSError) as error:
                log.warning("task %s could not be rendered: %s", task.id, error)
                return INTERNAL
        return None

    async def _draw(self, task: Task, job: ImageJob) -> Failure | None:
        account = self._desk.accounts[task.account]
        references = [self._desk.inputs / name for name in job.references]
        try:
            for index, name in enumerate(_outcome(task)[0].values()):
                content = await asyncio.to_thread(
                    pictures.made, job, job.seed + index, references, account.style, f"{account.id} · {task.model}"
                )
                (self._desk.files / name).write_bytes(content)
        except OSError as error:
            log.warning("task %s could not be drawn: %s", task.id, error)
            return INTERNAL
        return None

    def _end(self, task: Task, status: str, *, error: Failure | None = None, charge: bool = False) -> None:
        self._desk.archive.save(moved(task, status, self._desk.now(), error=error), charge=charge)

    async def _until(
        self,
        account_id: str,
        due: Callable[[Account], float],
        free: Callable[[Account], bool] = lambda account: True,
        expires_at: float = float("inf"),
    ) -> bool:
        """Waits until `due` has come and `free` holds, by the account's settings of the moment; False when too late."""
        condition = self._changed[account_id]
        async with condition:
            while True:
                account, now = self._desk.accounts[account_id], self._desk.now()
                if now >= expires_at:
                    return False
                late = now >= due(account)
                if late and free(account):
                    return True
                pause = min(expires_at, float("inf") if late else due(account)) - now
                try:
                    async with asyncio.timeout(None if pause == float("inf") else pause):
                        await condition.wait()
                except TimeoutError:
                    continue


def _outcome(task: Task) -> tuple[dict[str, str], dict[str, Any]]:
    """The files that a task makes, by their part in the result, and what it uses."""
    if task.pictures is not None:
        names = {f"image-{index}": f"{task.id}-{index}.{task.pictures.encoding}" for index in range(task.pictures.n)}
        return names, {"images": task.pictures.n}
    tokens = video_tokens(task.job)
    files = {"video": f"{task.id}.mp4"}
    if task.job.return_last_frame:
        files["last_frame"] = f"{task.id}.png"
    return files, {"completion_tokens": tokens, "total_tokens": tokens}
