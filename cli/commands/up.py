"""`pointsman up`: everything on this machine, until Ctrl-C."""

import asyncio
import os
from pathlib import Path

import click
import uvloop

from cli import output
from cli.context import Session, pass_session
from cli.stack import DEFAULT_HTTP, Plan, StackError, serve
from libs.faults.fault import Fault
from libs.host.cluster import EmbeddedPostgresError
from libs.host.placement import PlacementError
from libs.telemetry.logs import configure

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
    check_http(env.get("POINTSMAN_HTTP") or DEFAULT_HTTP)
    folder = data or session.data
    env["POINTSMAN_DATA"] = str(folder)
    configure(env.get("POINTSMAN_LOG_LEVEL") or "info")
    plan = Plan(env, folder, catalog, not no_providers, studio_port)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve(plan))
    except (StackError, EmbeddedPostgresError, PlacementError, OSError, Fault) as error:
        output.fail(str(error), output.REFUSED, remedy(error))


def check_http(text: str) -> None:
    """End the command with the right form unless `text` is HOST:PORT, with an IPv6 host in brackets."""
    host, _, port = text.strip().rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535 or (":" in host and not host.startswith("[")):
        step = "say HOST:PORT, for example 127.0.0.1:8080"
        output.fail(f"--http (POINTSMAN_HTTP): {text!r} is no address", output.WRONG_USE, step)


def remedy(error: Exception) -> str:
    """What to do about a stack that did not start, where its own words do not say so."""
    if isinstance(error, Fault):
        return "see that the database of POINTSMAN_DATABASE_URL runs and lets this user in, or leave the variable out"
    if isinstance(error, OSError) and "cannot listen" in str(error):
        return "stop what has this address, or choose others with --http and --grpc"
    if isinstance(error, OSError) and error.filename:
        return "choose a data directory that can be written, with --data"
    return ""
