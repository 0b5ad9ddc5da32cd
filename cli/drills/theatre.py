"""The stack that a drill harms: the demonstration's, with Channels that do not wait long, a clock and both books."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from cli.api import Api, Problem
from cli.demo.requests import RESTING, create, get
from cli.demo.stage import CATALOG, Stage, StageError, wait_until
from cli.drills.report import Report

LIMIT_S = 90.0
NOT_FOUND = 404
QUICK = {
    "POINTSMAN_RECONCILE_SETTLE_S": "2",
    "ROUTING_WORKER_LEASE_S": "4",
    "ROUTING_HEARTBEAT_S": "1",
}
IMPATIENT = {"submit_s": 2, "poll_s": 2}
Look = Callable[[], Awaitable[Any]]


class Theatre:
    """`async with Theatre(folder, report, tell) as theatre`. `tell` hears what is being done."""

    def __init__(self, folder: Path, report: Report, tell: Callable[[str], None]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.report = report
        self.tell = tell
        self.stage = Stage(folder, _catalog(folder), QUICK)
        self.runs: list[str] = []
        """Every Run that was created."""

    @property
    def api(self) -> Api:
        """The product, as its admin."""
        return self.stage.api

    async def __aenter__(self) -> "Theatre":
        self.tell("starting a stack of its own")
        await self.stage.__aenter__()
        return self

    async def __aexit__(self, *given: object) -> None:
        await self.stage.__aexit__(*given)

    @property
    def now(self) -> float:
        """Seconds of a clock that never jumps."""
        return asyncio.get_running_loop().time()

    async def create(self, model: str, given: Mapping[str, Any]) -> str:
        """A new Run of a model; its id."""
        self.runs.append(await create(self.api, model, given, "drill"))
        return self.runs[-1]

    async def produce(self, document: Mapping[str, Any]) -> str:
        """A new Run of a production; its id."""
        made = await self.api.call("POST", "/v1/runs", body={"production": document})
        self.runs.append(str(made["id"]))
        return self.runs[-1]

    async def run(self, run_id: str) -> dict[str, Any]:
        """The Run now."""
        return await get(self.api, run_id)

    async def until(self, look: Look, done: Callable[[Any], bool], what: str) -> Any:
        """What was seen, once it is so. StageError where it never is."""
        self.tell(f"waiting until {what}")
        seen = await wait_until(look, done, seconds=LIMIT_S)
        if not done(seen):
            raise StageError(f"it was waited {LIMIT_S:g} s in vain until {what}; seen last: {seen}")
        return seen

    async def rested(self, *run_ids: str) -> list[dict[str, Any]]:
        """Those Runs, once they are at rest."""
        return [
            await self.until(partial(self.run, run_id), lambda run: run["status"] in RESTING, "it is done")
            for run_id in run_ids
        ]

    async def review(self, run_id: str) -> dict[str, Any]:
        """The first question of that Run that waits for a person, once there is one."""
        found = await self.until(lambda: self.reviews(run_id), bool, "a person is asked")
        asked: dict[str, Any] = found[0]
        return asked

    async def reviews(self, run_id: str) -> list[dict[str, Any]]:
        """Questions of that Run that wait."""
        found: list[dict[str, Any]] = (await self.api.get("/v1/operator/reviews", run=run_id))["reviews"]
        return found

    async def decide(self, review: Mapping[str, Any], decision: str) -> None:
        """Decide it."""
        path = f"/v1/operator/reviews/{review['id']}/decide"
        await self.api.call("POST", path, body={"decision": decision, "comment": "a drill"})

    async def account(self, name: str, **changes: Any) -> None:
        """Change an account of the providers."""
        await self.stage.lab.call("POST", f"/lab/accounts/{name}", body=changes)

    async def script(self, match: Mapping[str, Any], *steps: Mapping[str, Any], repeat: int = 1) -> None:
        """Make the providers answer as told."""
        rule = {"match": match, "then": steps, "repeat": repeat}
        await self.stage.lab.call("POST", "/lab/script", body=rule)

    async def ledger(self) -> dict[str, Any]:
        """The providers' books."""
        return await self.stage.lab.get("/lab/ledger")

    async def known(self) -> list[dict[str, Any]]:
        """The Runs that the server still knows; the others are lost data."""
        found = []
        for run_id in self.runs:
            try:
                found.append(await self.run(run_id))
            except Problem as problem:
                if problem.status != NOT_FOUND:
                    raise
                self.report.data_lost.append(run_id)
        return found

    async def tasks(self, runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Every Task that stands behind them."""
        ids = [node["task_id"] for run in runs for node in run["nodes"] if node["task_id"]]
        return [await self.api.get(f"/v1/tasks/{task_id}") for task_id in ids]

    def blob(self, sha256: str) -> Path:
        """Where the bytes of an artifact lie."""
        return self.stage.data / "blobs" / sha256[:2] / sha256

    async def stopped(self, meanwhile: Callable[[], None]) -> None:
        """Stop the stack, do something to what it left, and start it again on the same ports."""
        await self.stage.restart(meanwhile)


def copy_tree(source: Path, target: Path) -> None:
    """`target` becomes what `source` is."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, symlinks=True)


def _catalog(folder: Path) -> Path:
    """The demonstration's catalogue with short time limits."""
    declared = yaml.safe_load(CATALOG.read_text(encoding="utf-8"))
    for channel in declared["channels"]:
        channel["timeouts"] = IMPATIENT
        channel["poll_interval_s"] = 0.3
    file = folder / "catalog.yaml"
    file.write_text(yaml.safe_dump(declared, sort_keys=False), encoding="utf-8")
    return file
