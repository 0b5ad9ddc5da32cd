"""What every drill shares: the layout with a second dispatcher, a burst by good clients, the judges of its end."""

import asyncio
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
from aiohttp import ClientError

from libs.host.embedded_postgres import EmbeddedPostgres
from tests.support import books, processes
from tests.support.postgres import SETTINGS
from tests.support.stack import Setting, SevenProcesses, Stack
from tests.support.visitor import FIXED, RESTING, Answer, gap_free, until
from tests.support.waiting import eventually

LEASE_S = 4.5
QUICK = {
    "ROUTING_WORKER_LEASE_S": str(LEASE_S),
    "ROUTING_HEARTBEAT_S": "1.5",
    "ROUTING_CAPACITY_TTL_S": "6",
    "ROUTING_RENEW_INTERVAL_S": "2",
    "ROUTING_PEER_TIMEOUT_S": "3",
    "ROUTING_DELIVERY_S": "3",
    "POINTSMAN_RECONCILE_SETTLE_S": "2",
}
WITHIN_S = 120.0
STUCK = {"stuck_state", "invariant_violated", "ledger_mismatch", "submission_unresolved"}
HONEST = {"provider_error", "supply_unavailable"}
"""What may become of a Run whose two Attempts were both lost on their way: not taken, as the records prove."""


class TwoDispatchers(SevenProcesses):
    """Each context in a process of its own and routing in two; the database keeps what it confirmed over a crash."""

    members = ("health", "cost_quote", "capacity", "provider_adapter", "routing-1", "routing-2", "runs", "edge")

    def __init__(self, folder: Path, setting: Setting) -> None:
        super().__init__(folder, setting)
        lasting = {**SETTINGS, "synchronous_commit": "on"}
        self._postgres = EmbeddedPostgres(folder / "pg", settings=lasting, durable=False)

    def contexts_of(self, member: str) -> tuple[str, ...]:
        return (member.partition("-")[0],)

    @asynccontextmanager
    async def frozen(self, *members: str) -> AsyncIterator[None]:
        """SIGSTOP at the begin of the block, SIGCONT at its end."""
        pids = {self._children[member].pid for member in members}
        processes.send(pids, signal.SIGSTOP)
        try:
            yield
        finally:
            processes.send(pids, signal.SIGCONT)

    @asynccontextmanager
    async def stalled_database(self) -> AsyncIterator[None]:
        """SIGSTOP of the server and all its sessions at the begin of the block, SIGCONT at its end."""
        pids = processes.tree(self._postgres.pid)
        processes.send(pids, signal.SIGSTOP)
        try:
            yield
        finally:
            processes.send(pids, signal.SIGCONT)

    async def crash_database(self) -> None:
        """SIGQUIT to the server: it drops everybody and writes nothing more. Return when it is gone."""
        processes.send({self._postgres.pid}, signal.SIGQUIT)
        await eventually(lambda: not self._postgres.is_running)

    async def recover_database(self) -> None:
        """Return when it takes connections again."""
        assert await self._postgres.ensure_running()

    async def rows(self, query: str) -> list[dict[str, Any]]:
        """What the database holds, past the product."""
        connection = await asyncpg.connect(self._postgres.url)
        try:
            return [dict(row) for row in await connection.fetch(query)]
        finally:
            await connection.close()

    def told(self, member: str, words: str) -> int:
        """How many lines of a process's log match."""
        return len(re.findall(words, (self.folder / f"{member}.log").read_text(errors="replace")))


async def insist(stack: Stack, name: str, model: str = "burst") -> str:
    """Create a Run as a good client does: with one key, again and again, until it is taken; its id."""
    body = {"model": model, "input": {"prompt": name, **FIXED}}
    headers = {"Idempotency-Key": name.replace(" ", "-")}

    async def knock() -> Answer | None:
        try:
            return await stack.api.ask("POST", "/v1/runs", json=body, headers=headers)
        except (ClientError, TimeoutError):
            return None

    def is_taken(answer: Answer | None) -> bool:
        if answer is not None and answer.status != 202:
            assert (answer.status, answer.json["retryable"]) in {(503, True), (504, True)}, answer.body
        return answer is not None and answer.status == 202

    taken = await until(knock, is_taken, WITHIN_S)
    assert taken is not None
    return str(taken.json["id"])


async def burst(stack: Stack, title: str, count: int) -> list[str]:
    """That many Runs at once."""
    return list(await asyncio.gather(*(insist(stack, f"{title} {number}") for number in range(count))))


async def judged(stack: Stack, runs: list[str], *, lost: int = 0) -> None:
    """Every Run ends, at most `lost` of them without a result and for a reason that is true; the books agree, no slot
    is held, and nothing calls for an operator."""
    done = [await _rested(stack, run_id) for run_id in runs]
    failed = [run for run in done if run["status"] != "succeeded"]
    assert len(failed) <= lost, failed
    for run in done:
        assert run["status"] == "succeeded" or (run["error"] or {}).get("code") in HONEST, run
        gap_free(await stack.api.events_of(run["id"]))
    await books.agree(stack)
    alerts = (await stack.api.get("/v1/operator/alerts"))["alerts"]
    assert not [alert for alert in alerts if alert["kind"] in STUCK], alerts


async def _rested(stack: Stack, run_id: str) -> dict[str, Any]:
    """The Run at rest, as seen by a client who bears with a 503."""

    async def look() -> dict[str, Any]:
        try:
            answer = await stack.api.ask("GET", f"/v1/runs/{run_id}")
        except (ClientError, TimeoutError):
            return {"status": "unreachable"}
        return answer.json if answer.status == 200 else {"status": f"answered {answer.status}"}

    return await until(look, lambda run: run["status"] in RESTING, WITHIN_S)
