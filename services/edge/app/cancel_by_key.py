"""End a Run of which its caller knows the key alone: the answer to its creation was lost, or has not come (IDEM-3)."""

from libs.faults.fault import Fault
from libs.kernel.clock import Clock
from services.edge.app.authenticate import Caller
from services.edge.app.create_run import ROUTE
from services.edge.app.keyed_turns import KeyedTurns
from services.edge.domain import shapes
from services.edge.ports import Runs

LOOK_S = 0.25


class CancelByKey:
    """The use-case with what it needs. `wait_s`: how long a Run may still come of a key that nobody here works on."""

    def __init__(self, runs: Runs, turns: KeyedTurns, clock: Clock, wait_s: float) -> None:
        self._runs = runs
        self._turns = turns
        self._clock = clock
        self._wait_s = wait_s

    async def __call__(self, caller: Caller, key: str, reason: str) -> shapes.Run:
        """The Run with its cancel on record.

        A creation that is in flight at this replica is waited for as its repetition would wait; one that another
        replica has in hand is looked for a while. Faults: not_found, idempotency_in_progress, run_terminal.
        """
        until_s = self._clock.monotonic() + self._wait_s
        while True:
            async with self._turns.of((caller.tenant, ROUTE, key)):
                run = await self._runs.replay(caller.tenant, key, "")
            if run is not None:
                return await self._runs.cancel(caller.tenant, run.id, reason, caller.key_id)
            if self._clock.monotonic() >= until_s:
                raise Fault.of("not_found", f"no run came of the key {key!r}")
            await self._clock.sleep(LOOK_S)
