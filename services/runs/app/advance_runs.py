"""The ticks that carry every live Run on: decide, record, act, record.

Recovery is the same road: what was recorded is looked at again, and every act carries an id that was recorded before.
Single generations and productions have ticks of their own, so that neither waits for the other. No transaction is open
while another context is asked; a write that finds a newer revision is dropped, because whoever wrote it did the same
work or changed what is to be done.

A Run that this process found at rest is read again once something may follow: it was written, its time has come, or a
Task that it follows is not as it was told. Until then a tick reads its revision alone.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence

from libs.kernel.world import World
from services.runs.app.hands import Hands
from services.runs.app.plans import Plans
from services.runs.app.recording import Recorder
from services.runs.app.remembering import Memory
from services.runs.domain import standing
from services.runs.domain.engine import Act, Command, Deed, Record, next_commands
from services.runs.domain.hearing import TASK_ENDS
from services.runs.domain.history import applied
from services.runs.domain.plan import Plan
from services.runs.domain.run import Draft, Run, RunState
from services.runs.domain.task_view import TaskView
from services.runs.domain.waking import wakes_at
from services.runs.ports import Routing, Runs

LISTED, BATCH = 1_000, 200
ROUNDS = 40
PRODUCTIONS_AT_ONCE = 8
ASKING_AT_ONCE = 16
SLOW = frozenset({Deed.EXAMINE})
"""Done after everything else was recorded: they may take seconds."""
Told = Mapping[str, TaskView]
"""Tasks by id, as a Run was told of them."""


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
        self._singles, self._productions = Memory[Told](world.rng), Memory[Told](world.rng)
        """Of those at rest: what they were told when nothing followed from it."""

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

        async for revisions in self._listed([RunState.PENDING], productions=False):
            async for batch in self._whole(list(revisions)):
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
        states = [RunState.RUNNING, RunState.PAUSED]
        async for batch in self._awake(states, self._singles, productions=False):
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
        async for batch in self._awake(states, self._productions, productions=True):
            async with asyncio.TaskGroup() as group:
                for run in batch:
                    group.create_task(one(run))
        return more

    async def _carry(self, run: Run, tasks: Told, *, rounds: int) -> Run:
        """Decide and act until nothing follows."""
        after = await self._decide_and_act(run, tasks, rounds)
        await self._runs.catch_up(after)
        return after

    async def _decide_and_act(self, run: Run, tasks: Told, rounds: int) -> Run:
        plan = self._plans.of(run)
        told, followed = tasks, False
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
                self._rest(plan, run, commands, told)
                return run
            saved = await self._recorder.record(run, drafts)
            if saved is None:  # somebody was faster: look again at what it is by now
                saved = await self._runs.get(run.id)
                if saved is None:
                    return run
                told, followed = {}, True  # `tasks` does not know what it has begun since
            run = saved
        return run

    def _rest(self, plan: Plan, run: Run, commands: Sequence[Command], told: Told) -> None:
        """Remember that nothing followed. What was tried in vain is tried again, and so is what a Task's end began."""
        if any(not isinstance(command, Act) or command.deed is not Deed.FOLLOW for command in commands):
            return
        heard = {task_id: told[task_id] for task_id in standing.followed(run) if task_id in told}
        if len(heard) < len(standing.followed(run)) or any(task.state in TASK_ENDS for task in heard.values()):
            return
        memory = self._singles if run.production is None else self._productions
        now = self._world.clock.now()
        memory.keep(run, heard, now, wakes_at(plan, run, now))

    async def _act(self, run: Run, todo: Sequence[Act], tasks: Told) -> Sequence[Draft]:
        """Do what is quick; what is slow only when there is nothing else."""
        plan = self._plans.of(run)
        quick = [act for act in todo if act.deed not in SLOW]
        drafts = await self._do(run, quick, tasks)
        if drafts or not (slow := [act for act in todo if act.deed in SLOW]):
            return drafts
        return await self._hands.do(plan, run, slow[0], tasks)

    async def _do(self, run: Run, todo: Sequence[Act], tasks: Told) -> Sequence[Draft]:
        plan = self._plans.of(run)
        gathered: list[Draft] = []
        for act in todo:
            drafts = await self._hands.do(plan, run, act, tasks)
            if drafts:
                gathered.extend(drafts)
                run = applied(run, drafts, self._world.clock.now())
        return gathered

    async def _tasks_of(self, batch: Sequence[Run]) -> Told:
        ids = [task_id for run in batch for task_id in standing.followed(run)]
        return await self._routing.tasks(ids) if ids else {}

    async def _awake(
        self, states: Sequence[RunState], memory: Memory[Told], *, productions: bool
    ) -> AsyncIterator[Sequence[Run]]:
        """Those from which something may follow, whole."""
        seen: set[str] = set()
        async for revisions in self._listed(states, productions=productions):
            seen.update(revisions)
            now = self._world.clock.now()
            resting = {run_id: memory.of(run_id, revision, now) for run_id, revision in revisions.items()}
            told = {task_id: task for heard in resting.values() for task_id, task in (heard or {}).items()}
            tasks = await self._routing.tasks(list(told)) if told else {}
            news = {task_id for task_id, task in told.items() if tasks.get(task_id) != task}
            awake = [run_id for run_id, heard in resting.items() if heard is None or not news.isdisjoint(heard)]
            async for batch in self._whole(awake):
                yield batch
        memory.forget_all_but(seen)

    async def _listed(self, states: Sequence[RunState], *, productions: bool) -> AsyncIterator[Mapping[str, int]]:
        after = ""
        while revisions := await self._runs.revisions(states, after, LISTED, productions=productions):
            yield revisions
            *_, after = revisions

    async def _whole(self, run_ids: Sequence[str]) -> AsyncIterator[Sequence[Run]]:
        for start in range(0, len(run_ids), BATCH):
            yield await self._runs.several(run_ids[start : start + BATCH])
