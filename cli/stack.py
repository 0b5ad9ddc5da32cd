"""A whole stack on one machine: the local providers as a child process, every context in this one."""

import asyncio
import json
import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.api import Api, Problem, Unreachable
from cli.preflight import DEFAULT_HTTP, StackError, check_ports, check_settings, prepare_data
from libs.host.hosting import Host
from libs.host.placement import placement
from libs.host.process import until_stopped
from services.__main__ import BUILDERS

CATALOG = Path(__file__).resolve().parent.parent / "deploy" / "catalogs" / "studio.yaml"
STUDIO_ORIGIN = "http://127.0.0.1:9101"
"""Where the shipped catalogue expects the local providers."""
STUDIO_START_S = 30.0
STUDIO_STOP_S = 10.0
PORTS_FREE_S = 3.0

log = logging.getLogger(__name__)
DRAWN_SMALL = {"ROUTING_DRIFT_PIXEL_SHARE": "0"}
"""The local providers draw every clip small, whatever was asked: its pixels are no witness of a drift."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to start. `catalog` None means: the shipped one if providers are wanted and nothing was ever applied."""

    env: Mapping[str, str]
    data: Path
    catalog: Path | None = None
    providers: bool = True
    studio_port: int = 9101


class LocalProviders:
    """The studio as a child. It dies with this process, and what it had accepted it takes up at its next start."""

    def __init__(self, data: Path, port: int) -> None:
        self._data = data
        self._port = port
        self._process: asyncio.subprocess.Process | None = None
        self.facts: dict[str, Any] = {}

    async def start(self) -> None:
        """Return once it answers; `facts` holds its `url`, `base_urls` and `keys`. Raises StackError."""
        self._data.mkdir(exist_ok=True)
        ready = self._data / "ready.json"
        ready.unlink(missing_ok=True)
        log = (self._data / "studio.log").open("ab")
        arguments = ("--port", str(self._port), "--data", str(self._data), "--ready-file", str(ready))
        with log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "services.studio", *arguments, "--exit-with-parent"),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            async with asyncio.timeout(STUDIO_START_S):
                while not ready.exists():
                    if self._process.returncode is not None:
                        raise StackError(self._why())
                    await asyncio.sleep(0.05)
        except TimeoutError:
            log_file = self._data / "studio.log"
            raise StackError(f"the local providers were not ready after {STUDIO_START_S:g} s; see {log_file}") from None
        self.facts = json.loads(ready.read_text())
        async with Api(self.facts["url"], "") as lab:
            accounts = (await lab.get("/lab/accounts"))["accounts"]
        self.facts["keys"] = {account["id"]: account["key"] for account in accounts}

    def _why(self) -> str:
        last = (self._data / "studio.log").read_text(errors="replace").strip().splitlines()[-1:]
        said = last[0] if last else "it said nothing"
        return f"the local providers could not start: {said} (is their port free? --studio-port names another)"

    async def stop(self) -> None:
        """Ask it to stop, and wait."""
        if self._process is None or self._process.returncode is not None:
            return
        self._process.terminate()
        try:
            async with asyncio.timeout(STUDIO_STOP_S):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()


def secrets_of(facts: Mapping[str, Any]) -> dict[str, str]:
    """The variables by which the shipped catalogue names the local providers' keys."""
    return {f"STUDIO_{account.upper()}_KEY": key for account, key in facts.get("keys", {}).items()}


async def apply_catalog(api: Api, file: Path | None, facts: Mapping[str, Any]) -> None:
    """Bring the catalogue into force before anybody is told that the stack is ready. Raises StackError.

    `file` None applies the shipped one, and only where no catalogue was ever applied.
    """
    try:
        async with api:
            if file is None and (not facts or (await api.get("/v1/operator/catalog"))["revision"]):
                return
            text = (file or CATALOG).read_text(encoding="utf-8")
            text = text.replace(STUDIO_ORIGIN, facts.get("url", STUDIO_ORIGIN))
            await api.call("POST", "/v1/operator/catalog:apply", text=text)
    except Problem as problem:
        sentence, places = problem.told()
        told = "".join(f"\n  {place}" for place in places)
        raise StackError(f"the catalogue {file or CATALOG} was refused: {sentence}{told}") from problem
    except Unreachable as error:
        raise StackError(f"the stack's own HTTP door does not answer: {error}") from error
    except OSError as error:
        raise StackError(f"the catalogue {file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise StackError(f"the catalogue {file} is no text in UTF-8 (byte {error.start})") from error


def own_api(env: Mapping[str, str], data: Path) -> Api:
    """The stack's own HTTP door with its admin key, once the edge has started."""
    key = env.get("POINTSMAN_ADMIN_KEY") or (data / "admin.key").read_text(encoding="utf-8").strip()
    return Api(f"http://{env.get('POINTSMAN_HTTP') or DEFAULT_HTTP}", key)


class ToldHost(Host):
    """A host that tells somebody when it is ready."""

    def __init__(self, *given: Any, when_ready: Callable[[Host], None], **more: Any) -> None:
        super().__init__(*given, **more)
        self._when_ready = when_ready

    async def start(self) -> None:
        """See `Host`."""
        await super().start()
        self._when_ready(self)


async def _ports_free(plan: Plan) -> None:
    """Return once all ports are free. StackError if they are not: what was killed a moment ago may still be leaving."""
    loop = asyncio.get_running_loop()
    end = loop.time() + PORTS_FREE_S
    while True:
        try:
            return check_ports(plan.env, plan.studio_port if plan.providers else None)
        except StackError:
            if loop.time() >= end:
                raise
        await asyncio.sleep(0.1)


async def serve(plan: Plan, when_ready: Callable[[Host], None] = lambda host: None) -> None:
    """Start everything, and stay until a signal asks for a stop. Raises StackError and what the host raises."""
    check_settings(plan.env)
    prepare_data(plan.data)
    await _ports_free(plan)
    studio = LocalProviders(plan.data / "studio", plan.studio_port) if plan.providers else None
    try:
        if studio is not None:
            await studio.start()
        facts = studio.facts if studio is not None else {}
        env = {**(DRAWN_SMALL if plan.providers else {}), **secrets_of(facts), **plan.env}
        place = placement(env, available=BUILDERS)

        async def catalogue(host: Host) -> None:
            await apply_catalog(own_api(host.env, plan.data), plan.catalog, facts)

        await until_stopped(ToldHost(place, env, BUILDERS, before_ready=[catalogue], when_ready=when_ready))
    finally:
        if studio is not None:
            await studio.stop()
    log.info("stopped")
