"""A whole stack on one machine: the local providers as a child process, every context in this one."""

import asyncio
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.api import Api
from libs.faults.fault import Fault
from libs.host.hosting import Host
from libs.host.placement import placement
from libs.host.process import until_stopped
from libs.rpc.faulting import faults_from_rpc
from pointsman.routing.v1 import catalog_service_pb2
from pointsman.routing.v1.catalog_service_pb2_grpc import CatalogServiceStub
from services.__main__ import BUILDERS

CATALOG = Path(__file__).resolve().parent.parent / "deploy" / "catalogs" / "studio.yaml"
STUDIO_ORIGIN = "http://127.0.0.1:9101"
"""Where the shipped catalogue expects the local providers."""
STUDIO_START_S = 30.0
STUDIO_STOP_S = 10.0
APPLY_S = 30.0


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
        return f"the local providers could not start: {said} (port taken? try --studio-port, or --no-providers)"

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


async def apply_catalog(host: Host, file: Path | None, facts: Mapping[str, Any]) -> None:
    """Bring the catalogue into force before anybody is told that the stack is ready. Raises StackError.

    `file` None applies the shipped one, and only where no catalogue was ever applied.
    """
    stub: Any = CatalogServiceStub(host.channels.for_caller("cli").to("routing"))
    try:
        async with faults_from_rpc():
            if file is None:
                listed = await stub.List(catalog_service_pb2.ListRequest(page_size=1), timeout=APPLY_S)
                if listed.revision or not facts:
                    return
            text = (file or CATALOG).read_text(encoding="utf-8")
            text = text.replace(STUDIO_ORIGIN, facts.get("url", STUDIO_ORIGIN))
            await stub.Apply(catalog_service_pb2.ApplyRequest(catalog_yaml=text), timeout=APPLY_S)
    except Fault as fault:
        places = "".join(f"\n  {error.pointer}: {error.reason}" for error in fault.errors)
        raise StackError(f"the catalogue {file or CATALOG} was refused: {fault.message}{places}") from fault
    except OSError as error:
        raise StackError(f"the catalogue {file} cannot be read: {error.strerror}") from error


async def serve(plan: Plan) -> None:
    """Start everything, and stay until a signal asks for a stop. Raises StackError and what the host raises."""
    studio = LocalProviders(plan.data / "studio", plan.studio_port) if plan.providers else None
    try:
        if studio is not None:
            await studio.start()
        facts = studio.facts if studio is not None else {}
        env = {**secrets_of(facts), **plan.env}
        place = placement(env, available=BUILDERS)
        host = Host(place, env, BUILDERS, before_ready=[lambda host: apply_catalog(host, plan.catalog, facts)])
        await until_stopped(host)
    finally:
        if studio is not None:
            await studio.stop()
