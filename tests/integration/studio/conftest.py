"""A studio on a free port, and a caller that speaks to it as a dispatcher would."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import openai
import pytest

from services.studio.compose import Studio
from services.studio.settings import Render, StudioConfig

TASKS = "/contents/generations/tasks"
SEEDANCE = "doubao-seedance-2-0-260128"
POLL_S = 0.02


class Caller:
    """One HTTP client for all accounts; answers are (status, JSON)."""

    def __init__(self, studio: Studio, session: aiohttp.ClientSession) -> None:
        self.studio = studio
        self.session = session

    async def call(self, method: str, account: str, path: str, **options: Any) -> tuple[int, Any]:
        """One request with the account's key."""
        headers = {"Authorization": f"Bearer {self.studio.key(account)}"}
        url = self.studio.base_url(account) + path
        async with self.session.request(method, url, headers=headers, **options) as answer:
            return answer.status, await answer.json()

    async def create(self, account: str = "aurora", prompt: str = "a storm", **fields: Any) -> tuple[int, Any]:
        """A video task of 4 s."""
        content = fields.pop("content", [{"type": "text", "text": prompt}])
        body = {"model": SEEDANCE, "content": content, "duration": 4, **fields}
        return await self.call("POST", account, TASKS, json=body)

    async def task(self, account: str, task_id: str, until: Callable[[dict], bool]) -> dict:
        """Polls until the task is as wanted."""
        deadline = time.monotonic() + 20
        while True:
            status, task = await self.call("GET", account, f"{TASKS}/{task_id}")
            assert status == 200, task
            if until(task):
                return task
            assert time.monotonic() < deadline, task
            await asyncio.sleep(POLL_S)

    async def finished(self, account: str, task_id: str) -> dict:
        """Polls until the task is terminal."""
        return await self.task(account, task_id, lambda task: task["status"] not in ("queued", "running"))

    async def lab(self, method: str, path: str, body: Any = None) -> Any:
        """One request to the control surface."""
        async with self.session.request(method, f"{self.studio.url}/lab{path}", json=body) as answer:
            assert answer.status < 300, await answer.text()
            return await answer.json()


@pytest.fixture
def config() -> StudioConfig:
    """The shipped accounts without their waiting times, drawing small clips."""
    quick = StudioConfig.default().adjusted(queue_s=0.0, render_s=0.0, first_token_s=0.0, tokens_per_s=0.0)
    return replace(quick, render=Render(scale=0.5))


@pytest.fixture
async def caller(config: StudioConfig, tmp_path: Path) -> AsyncIterator[Caller]:
    """A running studio and its caller."""
    async with Studio(config, tmp_path / "studio") as studio, aiohttp.ClientSession() as session:
        yield Caller(studio, session)


@pytest.fixture
def caller_of() -> type[Caller]:
    """The class, for tests that start their own studio."""
    return Caller


@pytest.fixture
async def client(caller: Caller) -> AsyncIterator[Callable[..., openai.AsyncOpenAI]]:
    """The official client of an account, without its retries: a call is one request."""
    clients: list[openai.AsyncOpenAI] = []

    def of(account: str, **options: Any) -> openai.AsyncOpenAI:
        known = {"base_url": caller.studio.base_url(account), "api_key": caller.studio.key(account), "max_retries": 0}
        clients.append(openai.AsyncOpenAI(**known | options))
        return clients[-1]

    yield of
    for made in clients:
        await made.close()
