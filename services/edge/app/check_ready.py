"""Whether requests can be served: every peer answers, and so does the store."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from libs.faults.fault import Fault

Probe = Callable[[], Awaitable[None]]
PATIENCE_S = 2.0


async def check_ready(probes: Mapping[str, Probe]) -> None:
    """Return if all answer; Fault peer_unavailable that names those that do not."""
    names = sorted(probes)
    answers = await asyncio.gather(*(_reason(probes[name]) for name in names))
    silent = {name: reason for name, reason in zip(names, answers, strict=True) if reason}
    if silent:
        told = ", ".join(f"{name} ({reason})" for name, reason in silent.items())
        raise Fault.of("peer_unavailable", f"not ready: {told}", metadata=silent)


async def _reason(probe: Probe) -> str:
    try:
        async with asyncio.timeout(PATIENCE_S):
            await probe()
    except TimeoutError:
        return f"no answer within {PATIENCE_S:g} s"
    except Fault as fault:
        return fault.code
    return ""
