"""Toy contexts that tell a story, and a process that hosts them.

python toys.py STORY [CONTEXT…] [FLAGS…]     the story: a file that gets a line for everything that happens
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from libs.host import process
from libs.host.hosted import Builder, ComposedContext, Registration
from libs.host.ticker import Ticker
from libs.kernel.world import World
from libs.store.database import Database
from libs.store.migrations import migrate
from pointsman.health.v1 import health_service_pb2, health_service_pb2_grpc

VERSIONS = Path(__file__).resolve().parents[2] / "contract" / "store" / "toy" / "versions"
HEALTH = "pointsman.health.v1.HealthService"
Tell = Callable[[str], None]


class ToyHealth(health_service_pb2_grpc.HealthServiceServicer):
    """Answers one RPC after having asked its database."""

    def __init__(self, database: Database | None) -> None:
        self._database = database

    async def GetSnapshot(self, request: Any, context: Any) -> Any:
        """An empty snapshot."""
        if self._database is not None:
            await self._database.ping()
        return health_service_pb2.GetSnapshotResponse()


def toy(name: str, tell: Tell, *, after: str = "") -> Builder:
    """A context that tells what is done to it. `health` serves and has tables; `after` names what it calls at start."""

    def build(env: Mapping[str, str], channels: Any, world: World) -> ComposedContext:
        url = env.get("POINTSMAN_DATABASE_URL", "")
        database = Database(url, schema=name) if url.startswith("postgres") else None
        registrations: tuple[Registration, ...] = ()
        if name == "health":
            servicer = ToyHealth(database)
            registrations = (
                (HEALTH, lambda server: health_service_pb2_grpc.add_HealthServiceServicer_to_server(servicer, server)),
            )

        async def migration() -> None:
            tell(f"migrate {name}")
            if database is not None:
                await migrate(url, schema=name, versions=VERSIONS)

        async def begin() -> None:
            if after:
                own = channels.for_caller("toy")  # no context of ours: the table of callers says nothing of it
                stub = health_service_pb2_grpc.HealthServiceStub(own.to(after))
                await stub.GetSnapshot(health_service_pb2.GetSnapshotRequest(), timeout=10)
            if env.get("TOY_BREAKS") == name:
                raise OSError(f"{name} cannot start")
            tell(f"start {name}")

        async def tick() -> None:
            tell(f"tick {name}")

        async def finish() -> None:
            tell(f"stop {name}")
            if database is not None:
                await database.close()

        ticker = Ticker(name, tick, world=world, interval_s=3600)
        return ComposedContext(
            name, registrations, migration=migration, begin=(begin,), tickers=(ticker,), finish=(finish,)
        )

    return build


def toys(tell: Tell) -> dict[str, Builder]:
    """Three contexts; runs calls health."""
    return {
        "health": toy("health", tell),
        "routing": toy("routing", tell),
        "runs": toy("runs", tell, after="health"),
    }


def main(arguments: list[str]) -> None:
    """Host the toys until a signal."""
    story = Path(arguments[0])

    def tell(line: str) -> None:
        with story.open("a") as file:
            file.write(line + "\n")

    process.main(toys(tell), arguments[1:], program="toys")


if __name__ == "__main__":
    main(sys.argv[1:])
