"""The command line of the studio: `python -m services.studio --port-base 9101 --data DIR --ready-file FILE`."""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import errno
import json
import logging
import os
import signal
import sys
from pathlib import Path

from services.studio.compose import Studio
from services.studio.settings import SettingsError, StudioConfig

DEFAULT_PORT = 9101
PR_SET_PDEATHSIG = 1


def main(arguments: list[str] | None = None) -> int:
    """Serves until SIGTERM or SIGINT; gives the exit code: 0 stopped, 1 could not start, 2 wrong arguments."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    if options.exit_with_parent:
        _exit_with_parent()
    try:
        config = StudioConfig.from_file(options.config) if options.config else StudioConfig.default()
        if options.local_models or os.environ.get("STUDIO_LOCAL_MODELS") == "1":
            config = config.with_local_models()
        asyncio.run(_serve(config, options))
    except (SettingsError, OSError) as error:
        sys.stderr.write(f"studio: {error}\n")
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            sys.stderr.write("studio: another process has this port; choose one with --port-base\n")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m services.studio", description="Real local providers over HTTP.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument(
        "--port-base", "--port", dest="port", type=int, default=DEFAULT_PORT, help="0 takes a free port"
    )
    parser.add_argument("--config", type=Path, help="YAML of accounts; the shipped accounts.yaml by default")
    parser.add_argument(
        "--data", type=Path, default=Path(".pointsman/studio"), help="where jobs, files and ledger live"
    )
    parser.add_argument("--ready-file", type=Path, help="written with the base URLs once requests are answered")
    parser.add_argument(
        "--local-models",
        action="store_true",
        help="real models for chat, embeddings and OCR, of the extra `local-models`; or STUDIO_LOCAL_MODELS=1",
    )
    parser.add_argument(
        "--exit-with-parent", action="store_true", help="stop when the starting process is gone (Linux)"
    )
    return parser


async def _serve(config: StudioConfig, options: argparse.Namespace) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    async with Studio(config, options.data, options.host, options.port) as studio:
        logging.getLogger(__name__).info("the studio answers at %s", studio.url)
        if options.ready_file:
            urls = {account: studio.base_url(account) for account in config.accounts}
            staged = options.ready_file.with_name(options.ready_file.name + ".part")
            staged.write_text(json.dumps({"url": studio.url, "base_urls": urls, "pid": os.getpid()}) + "\n")
            staged.replace(options.ready_file)
        await stopping.wait()


def _exit_with_parent() -> None:
    """Asks the kernel to kill this process with its parent, so that a killed stack leaves no studio on the port.

    A kill loses nothing: what was accepted is on disk and is taken up at the next start.
    """
    parent = os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
