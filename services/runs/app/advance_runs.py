"""The ticks that carry every live Run on: decide, record, act, record.

Recovery is the same road: what was recorded is looked at again, and every act carries an id that was recorded before.
Single generations and productions have ticks of their own, so that neither waits for the other. No transaction is open
while another context is asked; a write that finds a newer revision is dropped, because whoever wrote it did the same
work or changed what is to be done.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence

from libs.kernel.world import World
from services.runs.app.hands import Hands
from services.runs.app.plans import Plans
from services.runs.app.recording import Recorder
from services.runs.domain.engine import Act, Deed, Record, next_commands
from services.runs.domain.history import applied
from services.runs.domain.run import Draft, NodeState, Run, RunState
from services.runs.domain.task_view import TaskView
from services.runs.ports import Routing, Runs

BATCH = 200
ROUNDS = 40
PRODUCTIONS_AT_ONCE = 8
ASKING_AT_ONCE = 16
SLOW = frozenset({Deed.EXAMINE})
"""Done after everything else was recorded: they may take seconds."""


class Advance:
    """The ticks over one store."""

    def __init__(
        self, runs: Runs, routing: Routing, hands: Hands, plans: Plans, recorder: Recorder, world: World
    ) -> None:
        self._runs = runs
        self._routing = routing
        self._hands = hands
        self._plans = plans
        self._recorder = recorder
        self._world = world

    async def submit_pending(self) -> bool:
        """Hand every pending single generation to routing, oldest first; True when some were handed over.

        Those that must find money first ask several at once, beside the others.
        """
        handed = False
        places = asyncio.Semaphore(ASKING_AT_ONCE)

        async def one(listed: Run) -> None:
            nonlocal handed
            async with places:
                handed = await self._submit(listed) or handed

        async for batch in self._batches([RunState.PENDING], productions=False):
            async with asyncio.TaskGroup() as group:
                for listed in batch:
                    if listed.budget_id:
                        group.create_task(one(listed))
                    else:
                        handed = await self._submit(listed) or handed
        return handed

    async def _submit(self, listed: Run) -> bool:
        # The list was read before the Runs ahead of this one were handed over: a cancel may have come since.
        run = await self._runs.get(listed.id)
        if run is None or run.state is not RunState.PENDING:
            return False
        return (await self._carry(run, {}, rounds=4)).state is not RunState.PENDING

    async def follow_running(self) -> None:
        """See how every running single generation's Task stands."""
        async for batch in self._batches([RunState.RUNNING, RunState.PAUSED], productions=False):
            tasks = await self._tasks_of(batch)
            for run in batch:
                await self._carry(run, tasks, rounds=4)

    async def carry_productions(self) -> bool:
        """Carry every live production on, a large one not for longer than others bear; True when one has more to do."""
        places = asyncio.Semaphore(PRODUCTIONS_AT_ONCE)
        more = False

        async def one(run: Run) -> None:
            nonlocal more
            async with places:
                after = await self._carry(run, await self._tasks_of([run]), rounds=ROUNDS)
            more = more or after.last_sequence - run.last_sequence >= ROUNDS

        states = [RunState.PENDING, RunState.RUNNING, RunState.PAUSED]
        async for batch in self._batches(states, productions=True):
            async with asyncio.TaskGroup() as group:
                for run in batch:
                    group.create_task(one(run))
        return more

    async def _carry(self, run: Run, tasks: Mapping[str, TaskView], *, rounds: int) -> Run:
        """Decide and act until nothing follows, or somebody else was faster."""
        plan = self._plans.of(run)
        followed = False
        for _ in range(rounds):
            commands = next_commands(plan, run, self._world.clock.now())
            drafts: Sequence[Draft] = ()
            for command in commands:
                if isinstance(command, Record):
                    drafts = command.drafts
            if not drafts:
                todo = [command for command in commands if isinstance(command, Act)]
                if followed:  # what routing told has been heard
                    todo = [act for act in todo if act.deed not in (Deed.FOLLOW, Deed.CANCEL, Deed.PAUSE, Deed.UNPAUSE)]
                drafts = await self._act(run, todo, tasks)
                followed = True
            if not drafts:
                return run
            saved = await self._recorder.record(run, drafts)
            if saved is None:  # somebody was faster: look again at what it is by now
                saved = await self._runs.get(run.id)
                if saved is None:
                    return run
                followed = True  # `tasks` does not know what it has begun since
            run = saved
        return run

    async def _act(self, run: Run, todo: Sequence[Act], tasks: Mapping[str, TaskView]) -> Sequence[Draft]:
        """Do what is quick; what is slow only when there is nothing else."""
        plan = self._plans.of(run)
        quick = [act for act in todo if act.deed not in SLOW]
        drafts = await self._do(run, quick, tasks)
        if drafts or not (slow := [act for act in todo if act.deed in SLOW]):
            return drafts
        return await self._hands.do(plan, run, slow[0], tasks)

    async def _do(self, run: Run, todo: Sequence[Act], tasks: Mapping[str, TaskView]) -> Sequence[Draft]:
        plan = self._plans.of(run)
        gathered: list[Draft] = []
        for act in todo:
            drafts = await self._hands.do(plan, run, act, tasks)
            if drafts:
                gathered.extend(drafts)
                run = applied(run, drafts, self._world.clock.now())
        return gathered

    async def _tasks_of(self, batch: Sequence[Run]) -> Mapping[str, TaskView]:
        ids = [
            node.task_id
            for run in batch
            for node in run.nodes.values()
            if node.state is NodeState.RUNNING and node.task_id and not node.items
        ]
        return await self._routing.tasks(ids) if ids else {}

    async def _batches(self, states: Sequence[RunState], *, productions: bool) -> AsyncIterator[Sequence[Run]]:
        after = ""
        while batch := await self._runs.live(states, after, BATCH, productions=productions):
            yield batch
            after = batch[-1].id
