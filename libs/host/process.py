"""A process that hosts contexts until it is told to stop: arguments, signals, exit code.

Exit codes: 0 after a stop that was asked for (SIGTERM or SIGINT, drained), 1 if it could not start, 2 for wrong
arguments. A second signal ends the process at once with 128 + its number; the embedded database then stops by itself.
"""

import argparse
import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

import uvloop

from libs.faults.fault import Fault
from libs.host.cluster import EmbeddedPostgresError
from libs.host.hosted import Builder
from libs.host.hosting import Host
from libs.host.placement import PlacementError, placement
from libs.kernel.world import World
from libs.telemetry.logs import configure

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
FLAGS = {
    "http": ("HOST:PORT", "POINTSMAN_HTTP", "where the edge listens for HTTP"),
    "grpc": ("HOST:PORT", "POINTSMAN_GRPC", "where all hosted services listen for gRPC, for callers with a key"),
    "admin": ("ADDRESS", "POINTSMAN_ADMIN", "where channelz listens; 'off' for nowhere"),
    "metrics": ("HOST:PORT", "POINTSMAN_METRICS", "where this process shows its metrics to Prometheus"),
    "data": ("DIR", "POINTSMAN_DATA", "the data directory"),
    "ready-file": ("FILE", "POINTSMAN_READY_FILE", "created when every context serves"),
}

GARBAGE_BEGINS_AT = 20_000

log = logging.getLogger(__name__)


def main(
    builders: Mapping[str, Builder],
    arguments: Sequence[str] | None = None,
    env: Mapping[str, str] = os.environ,
    *,
    program: str = "python -m services",
    world: World | None = None,
) -> NoReturn:
    """Host the contexts named on the command line (none: all that live here) until a signal; then exit.

    `world`: None = this machine's.
    """
    options = _parser(builders, program).parse_args(arguments)
    merged = {**env, **_flags(options)}
    configure(merged.get("POINTSMAN_LOG_LEVEL") or "info")
    try:
        place = placement(merged, options.contexts, listen=options.listen, grpc=options.grpc, available=builders)
    except PlacementError as error:
        _complain(program, error)
        sys.exit(2)
    sys.exit(run(lambda: Host(place, merged, builders, world=world), program=program))


def run(make_host: Callable[[], Host], *, program: str) -> int:
    """Run a host on a loop of its own until it has been asked to stop; the exit code."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        try:
            runner.run(until_stopped(make_host()))
        except (EmbeddedPostgresError, PlacementError, OSError, Fault) as error:
            _complain(program, error)
            return 1
        except Exception:
            log.exception("could not start")
            return 1
    return 0


async def until_stopped(host: Host) -> None:
    """Start the host, wait for a stop signal, stop it. Raises what kept it from starting."""
    loop = asyncio.get_running_loop()
    asked = asyncio.Event()

    def on_signal(number: int) -> None:
        if asked.is_set():
            os._exit(128 + number)
        log.info("stopping on %s", signal.Signals(number).name)
        asked.set()

    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, on_signal, number)
    starting = asyncio.create_task(host.start())
    stopped = asyncio.create_task(asked.wait())
    try:
        await asyncio.wait({starting, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
            spare_collections()
            await stopped
    finally:
        for task in (starting, stopped):
            task.cancel()
        await asyncio.gather(starting, stopped, return_exceptions=True)
        await host.stop()
        for number in STOP_SIGNALS:
            loop.remove_signal_handler(number)


def spare_collections() -> None:
    """What stands once everything serves stays for good: no collection of garbage walks over it again, and one begins
    after twenty thousand new containers instead of seven hundred. (It took a fifth of the time of a call.)"""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_BEGINS_AT, 10, 10)


def _parser(builders: Mapping[str, Builder], program: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=program, description="Host Pointsman's contexts in this process.")
    names = ", ".join(builders)
    parser.add_argument("contexts", nargs="*", metavar="CONTEXT", help=f"{names}; none means all that live here")
    parser.add_argument(
        "--listen",
        action="append",
        default=[],
        metavar="ADDRESS",
        help="a further gRPC address, unix:/path or host:port",
    )
    for flag, (shape, variable, text) in FLAGS.items():
        parser.add_argument(f"--{flag}", metavar=shape, help=f"{text} ({variable})")
    return parser


def _flags(options: argparse.Namespace) -> dict[str, str]:
    given = {variable: getattr(options, flag.replace("-", "_")) for flag, (_, variable, _) in FLAGS.items()}
    return {variable: value for variable, value in given.items() if value is not None}


def _complain(program: str, error: Exception) -> None:
    sys.stderr.write(f"{program}: {error}\n")
