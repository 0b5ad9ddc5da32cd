"""A whole stack on one machine: the local providers as a child process, every context in this one."""

import asyncio
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.api import Api, Problem
from libs.host.hosting import Host
from libs.host.placement import placement
from libs.host.process import until_stopped
from services.__main__ import BUILDERS

CATALOG = Path(__file__).resolve().parent.parent / "deploy" / "catalogs" / "studio.yaml"
STUDIO_ORIGIN = "http://127.0.0.1:9101"
"""Where the shipped catalogue expects the local providers."""
STUDIO_START_S = 30.0
STUDIO_STOP_S = 10.0
DEFAULT_HTTP = "127.0.0.1:8080"


class StackError(Exception):
    """The stack cannot start; the text says why and what to do."""


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
        self._data.mkdir(parents=True, exist_ok=True)
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
        async with asyncio.timeout(STUDIO_START_S):
            while not ready.exists():
                if self._process.returncode is not None:
                    raise StackError(self._why())
                await asyncio.sleep(0.05)
        self.facts = json.loads(ready.read_text())
        async with Api(self.facts["url"], "") as lab:
            accounts = (await lab.get("/lab/accounts"))["accounts"]
        self.facts["keys"] = {account["id"]: account["key"] for account in accounts}

    def _why(self) -> str:
        last = (self._data / "studio.log").read_text(errors="replace").strip().splitlines()[-1:]
        said = last[0] if last else "it said nothing"
        steps = "is another stack up on this data directory? choose another with --data, a port with --studio-port"
        return f"the local providers could not start: {said} ({steps}, or --no-providers)"

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
        places = "".join(f"\n  {item['pointer']}: {item['reason']}" for item in problem.body.get("errors", ()))
        raise StackError(f"the catalogue {file or CATALOG} was refused: {problem}{places}") from problem
    except OSError as error:
        raise StackError(f"the catalogue {file} cannot be read: {error.strerror}") from error


def own_api(env: Mapping[str, str], data: Path) -> Api:
    """The stack's own HTTP door with its admin key, once the edge has started."""
    key = env.get("POINTSMAN_ADMIN_KEY") or (data / "admin.key").read_text(encoding="utf-8").strip()
    return Api(f"http://{env.get('POINTSMAN_HTTP') or DEFAULT_HTTP}", key)


async def serve(plan: Plan) -> None:
    """Start everything, and stay until a signal asks for a stop. Raises StackError and what the host raises."""
    studio = LocalProviders(plan.data / "studio", plan.studio_port) if plan.providers else None
    try:
        if studio is not None:
            await studio.start()
        facts = studio.facts if studio is not None else {}
        env = {**secrets_of(facts), **plan.env}
        place = placement(env, available=BUILDERS)

        async def catalogue(host: Host) -> None:
            await apply_catalog(own_api(host.env, plan.data), plan.catalog, facts)

        host = Host(place, env, BUILDERS, before_ready=[catalogue])
        await until_stopped(host)
    finally:
        if studio is not None:
            await studio.stop()
