"""`pointsman up`: everything on this machine, until Ctrl-C."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

import click
import uvloop

from cli import output
from cli.context import Session, pass_session
from cli.preflight import DEFAULT_HTTP, SettingError, StackError
from cli.stack import Plan, serve
from libs.faults.fault import Fault
from libs.host.cluster import EmbeddedPostgresError
from libs.host.hosting import Host
from libs.host.placement import DEFAULT_DATA, PlacementError
from libs.rpc.address import Address, Transport
from libs.telemetry.logs import configure

DEFAULT_URL = f"http://{DEFAULT_HTTP}"
FLAGS = {"http": "POINTSMAN_HTTP", "grpc": "POINTSMAN_GRPC", "ready_file": "POINTSMAN_READY_FILE"}


@click.command()
@click.option("--http", metavar="HOST:PORT", help="Where HTTP is served (POINTSMAN_HTTP, 127.0.0.1:8080).")
@click.option("--grpc", metavar="HOST:PORT", help="Where gRPC is served (POINTSMAN_GRPC, 127.0.0.1:50051).")
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), help="Data directory (POINTSMAN_DATA).")
@click.option(
    "--catalog",
    envvar="POINTSMAN_CATALOG",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Catalogue to apply at start (POINTSMAN_CATALOG).",
)
@click.option("--ready-file", metavar="FILE", help="Created when everything is ready.")
@click.option("--no-providers", is_flag=True, help="Do not start the local providers.")
@click.option("--studio-port", default=9101, show_default=True, help="Port of the local providers.")
@pass_session
def up(
    session: Session,
    http: str | None,
    grpc: str | None,
    data: Path | None,
    catalog: Path | None,
    ready_file: str | None,
    no_providers: bool,
    studio_port: int,
) -> None:
    """Start every context, an embedded database and the local providers, and stay until Ctrl-C."""
    given = {"http": http, "grpc": grpc, "ready_file": ready_file}
    env = {**os.environ, **{FLAGS[name]: value for name, value in given.items() if value}}
    folder = data or session.data
    env["POINTSMAN_DATA"] = str(folder)
    configure(env.get("POINTSMAN_LOG_LEVEL") or "info")
    # gRPC's C core writes lines of its own about a port that is taken; we say it in a sentence.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    plan = Plan(env, folder, catalog, not no_providers, studio_port)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve(plan, greet))
    except (SettingError, PlacementError) as error:
        output.fail(str(error), output.WRONG_USE)
    except (StackError, EmbeddedPostgresError, OSError, Fault) as error:
        output.fail(str(error), output.REFUSED, remedy(error))


def greet(host: Host) -> None:
    """On a terminal: where everything is, and what to try. Elsewhere the log says that it is ready."""
    if output.console.is_terminal:
        output.console.print(welcome(host.env, host.bound), highlight=False, markup=False, soft_wrap=True)


def welcome(env: Mapping[str, str], bound: Mapping[Address, Address]) -> str:
    """A few lines for whoever has just started it. `bound`: the gRPC address served for every one asked for."""
    url = f"http://{env.get('POINTSMAN_HTTP') or DEFAULT_HTTP}"
    grpc = ", ".join(found.listen for found in bound.values() if found.transport is Transport.TCP)
    data = Path(env["POINTSMAN_DATA"])
    key = "POINTSMAN_ADMIN_KEY" if env.get("POINTSMAN_ADMIN_KEY") else str(data / "admin.key")
    command = ".venv/bin/pointsman"
    if url != DEFAULT_URL:
        command += f" --url {url}"
    if data != Path(DEFAULT_DATA).absolute():
        command += f" --data {data}"
    lines = (
        "",
        "Pointsman is ready.",
        f"  HTTP       {url}, every operation at {url}/docs",
        f"  gRPC       {grpc or 'nowhere'}, with reflection",
        f"  admin key  {key}",
        f"  try        {command} models",
        f"             {command} doctor",
        "  Ctrl-C stops it.",
        "",
    )
    return "\n".join(lines)


def remedy(error: Exception) -> str:
    """What to do about a stack that did not start, where its own words do not say so."""
    if isinstance(error, Fault):
        return "see that the database of POINTSMAN_DATABASE_URL runs and lets this user in, or leave the variable out"
    if isinstance(error, OSError) and "cannot listen" in str(error):
        return "stop what has this address, or choose others with --http and --grpc"
    if isinstance(error, OSError) and error.filename:
        return "choose a data directory that can be written, with --data"
    return ""
