"""How a scene is played with one death in it, and what is asked of the world afterwards.

One database server and one studio stand for the whole sweep; every place has a database of its own, copied from one
that is migrated and has its catalogue. The mortal process dies, `pointsman up` is started on what it left, and then:
the Run ends honestly, every Task has ended, no Attempt is open or owes health its outcome, the studio heard no token
twice and its book agrees with ours, no slot is held, health knows each outcome once, nothing calls for an operator,
no money is held and the ledger says that as much was spent as the studio has charged.
What is asked of a production besides stands in `producing`.
"""

import json
import signal
import subprocess
import sys
import tempfile
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import asyncpg

from cli.api import Unreachable
from cli.demo.stage import free_ports
from libs.host.embedded_postgres import EmbeddedPostgres
from tests.e2e.sweep import producing, scenes
from tests.e2e.sweep.scenes import SCENES, Scene
from tests.support import processes
from tests.support.postgres import create_database, drop_database, embedded_server
from tests.support.visitor import FIXED, RESTING, Lab, Visitor, gap_free, until
from tests.support.waiting import eventually

START_S, END_S, TRAILING_S = 90.0, 60.0, 4.0
ACCEPTED = "lives routing.save.2/after"
"""The line of the journal after which a cancel has a job to stop: intent and acceptance are saved."""


@dataclass(frozen=True, slots=True)
class Place:
    """A scene and where in it the process dies; `at` empty: it lives."""

    scene: Scene
    at: str

    @staticmethod
    def of(words: str) -> "Place":
        """`switched/provider.POST.2/after`. KeyError for a scene that is none."""
        scene, _, at = words.partition("/")
        return Place(SCENES[scene], at)

    def __str__(self) -> str:
        return f"{self.scene.name}/{self.at or 'no death'}"


class NotReached(AssertionError):
    """The process came to the end of the scene and lives."""


class Theatre:
    """What stands for the whole sweep. Made by `theatre`."""

    def __init__(self, folder: Path, server: EmbeddedPostgres) -> None:
        self.folder = folder
        self.server = server
        self.mark = uuid.uuid4().hex
        self.key = f"pm_sweep_{uuid.uuid4().hex}"
        self.studio = f"http://127.0.0.1:{free_ports(1)[0]}"
        self.template = ""

    async def play(self, place: Place) -> list[str]:
        """Play it; the effects that took place before the death, in order. AssertionError for a broken promise."""
        url = await create_database(self.server, self.template)
        folder = self.folder / uuid.uuid4().hex[:8]
        folder.mkdir()
        try:
            return await Play(self, place, url, folder).whole()
        except AssertionError as error:
            raise type(error)(f"{place}: {error}\n{_words(folder)}") from error
        finally:
            await drop_database(self.server, url)

    def spawn(self, name: str, arguments: list[str], env: Mapping[str, str], folder: Path) -> "subprocess.Popen[bytes]":
        """A child with the sweep's settings."""
        own = {**scenes.SETTINGS, **scenes.secrets(), "POINTSMAN_LOG_LEVEL": "info", "POINTSMAN_ADMIN_KEY": self.key}
        outer = processes.environment(self.mark, {**own, **env})
        return processes.spawn([sys.executable, "-m", *arguments], outer, folder / f"{name}.log")


class Play:
    """One place, once."""

    def __init__(self, theatre: Theatre, place: Place, url: str, folder: Path) -> None:
        http, grpc = free_ports(2)
        self._theatre = theatre
        self._place = place
        self._url = url
        self._folder = folder
        self._journal = folder / "journal"
        self._name = uuid.uuid4().hex
        self._address = f"127.0.0.1:{http}"
        self._env = {
            "POINTSMAN_DATABASE_URL": url,
            "POINTSMAN_DATA": str(folder / "data"),
            "POINTSMAN_HTTP": self._address,
            "POINTSMAN_GRPC": f"127.0.0.1:{grpc}",
            "SWEEP_PLACE": place.at,
            "SWEEP_JOURNAL": str(self._journal),
        }

    async def whole(self) -> list[str]:
        """See `Theatre.play`."""
        async with AsyncExitStack() as stack:
            api = await stack.enter_async_context(Visitor(f"http://{self._address}", self._theatre.key))
            lab = await stack.enter_async_context(Lab(self._theatre.studio, ""))
            if self._place.scene.loses_answer:
                await lab.script("second", {"drop_after_body": True}, prompt_contains=self._name)
            async with self._process("mortal", ["tests.e2e.sweep.mortal"]) as mortal:
                await self._first_life(api, mortal)
                if not self._place.at:
                    await self._judge(api, lab)
                    return self._lived()
            async with self._process("heir", ["cli", "up", "--no-providers"]):
                await self._judge(api, lab)
            return self._lived()

    @asynccontextmanager
    async def _process(self, name: str, arguments: list[str]) -> AsyncIterator["subprocess.Popen[bytes]"]:
        """A process of the product; ready, or dead at its place. Killed at the end of the block."""
        ready = self._folder / f"{name}.ready"
        env = {**self._env, "POINTSMAN_READY_FILE": str(ready)}
        child = self._theatre.spawn(name, arguments, env, self._folder)
        try:
            await eventually(lambda: ready.exists() or child.poll() is not None, START_S)
            assert child.poll() in (None, -signal.SIGKILL), f"{name} ended with {child.returncode}"
            yield child
        finally:
            child.kill()
            child.wait()

    async def _first_life(self, api: Visitor, mortal: "subprocess.Popen[bytes]") -> None:
        """Return when the process is dead; without a place, when the Run is at rest."""

        def dead() -> bool:
            return mortal.poll() is not None

        async def over() -> bool:
            if dead():
                return True
            try:
                return bool((await api.run(run_id))["status"] in RESTING)
            except Unreachable:
                return False

        try:
            run_id = await self._order(api)
            if self._place.scene.cancels:
                await eventually(lambda: dead() or ACCEPTED in self._lines(), END_S)
                await self._cancel(api, run_id)
            if self._place.scene.produces:
                await producing.direct(api, run_id, END_S)
        except Unreachable:
            await eventually(dead, END_S)
            return
        await until(over, bool, END_S)
        if self._place.at:
            try:
                await eventually(dead, TRAILING_S)
            except AssertionError:
                raise NotReached(f"lived through {self._lived()}") from None
            assert mortal.returncode == -signal.SIGKILL

    async def _order(self, api: Visitor) -> str:
        """The Run of this play: made, or found again by its key."""
        model = self._place.scene.name
        body: dict[str, Any] = {"model": model, "input": {"prompt": f"a boat {self._name}", **FIXED}}
        if self._place.scene.produces:
            body = {"production": producing.document(model, self._name)}
        return str((await api.call("POST", "/v1/runs", body=body, headers={"Idempotency-Key": self._name}))["id"])

    async def _cancel(self, api: Visitor, run_id: str) -> None:
        await api.call("POST", f"/v1/runs/{run_id}/cancel", body={})

    async def _judge(self, api: Visitor, lab: Lab) -> None:
        run_id = await self._order(api)
        if self._place.scene.cancels:
            await self._cancel(api, run_id)
        if self._place.scene.produces:
            await producing.direct(api, run_id, END_S)
        run = await api.finished(run_id, END_S)
        assert (run["status"], (run["error"] or {}).get("code", "")) in self._place.scene.ends, run
        events = await api.events_of(run_id)
        gap_free(events)
        assert [item["id"] for item in (await api.get("/v1/runs"))["runs"]] == [run_id]
        await until(api.slots, lambda slots: not any(slots.values()), scenes.TTL_S + END_S)
        connection = await asyncpg.connect(self._url)
        try:
            jobs = await self._agree(connection, lab)
        finally:
            await connection.close()
        await _paid(api, jobs)
        if self._place.scene.produces:
            await producing.judge(api, run, events, jobs)
        alerts = (await api.get("/v1/operator/alerts"))["alerts"]
        assert not [item for item in alerts if item["kind"] not in HARMLESS], alerts

    async def _agree(self, connection: Any, lab: Lab) -> list[dict[str, Any]]:
        """Routing's rows, health's rows and the studio's book about the Tasks; the studio's jobs for them."""
        await until(lambda: connection.fetchval(OWED), lambda count: count == 0)
        assert await connection.fetchval(OPEN) == 0
        attempts = await connection.fetch("SELECT * FROM routing.attempts")
        ledger = await lab.ledger()
        tokens = {item["client_token"] for item in attempts}
        posts = {token: count for token, count in ledger["posts"]["by_client_token"].items() if token in tokens}
        assert set(posts.values()) <= {1}, posts
        jobs = [job for job in ledger["submissions"] if job["client_token"] in tokens]
        theirs = Counter(job["client_token"] for job in jobs)
        ours = Counter(item["client_token"] for item in attempts if item["accepted_at"])
        assert ours == theirs
        told = {item["id"] for item in attempts if _is_told(item)}
        known = await connection.fetch("SELECT attempt_id FROM health.outcome")
        assert sorted(row["attempt_id"] for row in known) == sorted(told)
        return jobs

    def _lines(self) -> list[str]:
        return self._journal.read_text().splitlines() if self._journal.exists() else []

    def _lived(self) -> list[str]:
        """What is in the journal, as places."""
        return [line.partition(" ")[2] for line in self._lines()]


async def _paid(api: Visitor, jobs: list[dict[str, Any]]) -> None:
    """What was charged, and no more, is spent under all root budgets together; a settlement that was lost is made up
    for within a walk over the open Holds."""

    def held(told: dict[str, Any]) -> bool:
        return any(Decimal(item["held"]["cost"]["amount"]) or item["held"]["attempts"] for item in told["budgets"])

    told = await until(lambda: api.get("/v1/operator/budgets"), lambda told: not held(told), END_S)
    spent = sum(Decimal(item["spent"]["cost"]["amount"]) for item in told["budgets"] if item["parent"] is None)
    charged = sum(Decimal(job["charged"]["amount"]) for job in jobs)
    assert spent == charged, (told, jobs)
    assert (await api.get("/v1/operator/budgets:check"))["mismatches"] == []


HARMLESS = frozenset({"breaker_opened", "exact_supply_unavailable"})
OPEN = "SELECT count(*) FROM routing.tasks WHERE state NOT IN ('succeeded', 'failed', 'cancelled')"
OWED = "SELECT count(*) FROM routing.attempts WHERE report_pending"


def _is_told(attempt: Any) -> bool:
    """Whether health is to hear of this end (HLT-13)."""
    if attempt["state"] == "failed":
        return attempt["counted"] and json.loads(attempt["failure"])["category"] != "unknown"
    return attempt["state"] == "succeeded"


def _words(folder: Path) -> str:
    logs = {path.name: path.read_text(errors="replace")[-3000:] for path in sorted(folder.glob("*")) if path.is_file()}
    return "\n".join(f"--- {name}\n{text}" for name, text in logs.items())


@asynccontextmanager
async def theatre() -> AsyncIterator[Theatre]:
    """A database server, a studio and the database that every place starts from."""
    with tempfile.TemporaryDirectory(prefix="pm-sweep-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        async with embedded_server() as server:
            house = Theatre(folder, server)
            config, ready = folder / "accounts.yaml", folder / "studio.ready"
            config.write_text(scenes.accounts(), encoding="utf-8")
            options = ("--port", house.studio.rpartition(":")[2], "--config", str(config), "--data", f"{folder}/studio")
            studio = house.spawn("studio", ["services.studio", *options, "--ready-file", str(ready)], {}, folder)
            try:
                await eventually(lambda: ready.exists() or studio.poll() is not None, START_S)
                await _fail_always(house)
                await _make_template(house)
                yield house
            finally:
                processes.send(processes.marked(house.mark), signal.SIGKILL)
                studio.wait()


async def _fail_always(house: Theatre) -> None:
    async with Lab(house.studio, "") as lab:
        await lab.script("first", {"status": 500}, repeat="forever")


async def _make_template(house: Theatre) -> None:
    """Let the product itself migrate a database and put the catalogue in force, and stop it."""
    url = await create_database(house.server)
    catalog, ready = house.folder / "catalog.yaml", house.folder / "template.ready"
    catalog.write_text(scenes.catalog(house.studio), encoding="utf-8")
    http, grpc = free_ports(2)
    env = {"POINTSMAN_DATABASE_URL": url, "POINTSMAN_HTTP": f"127.0.0.1:{http}", "POINTSMAN_GRPC": f"127.0.0.1:{grpc}"}
    options = ["--data", f"{house.folder}/data", "--catalog", str(catalog), "--ready-file", str(ready)]
    child = house.spawn("template", ["cli", "up", "--no-providers", *options], env, house.folder)
    try:
        await eventually(lambda: ready.exists() or child.poll() is not None, START_S)
        assert child.poll() is None, _words(house.folder)
        async with Visitor(f"http://127.0.0.1:{http}", house.key) as api:
            await until(api.slots, bool)
        child.terminate()
        await eventually(lambda: child.poll() is not None, START_S)
    finally:
        child.kill()
        child.wait()
    house.template = url.split("@/", 1)[1].split("?", 1)[0]
