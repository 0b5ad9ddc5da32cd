"""Stand-ins for what runs calls."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from libs.faults.fault import Fault
from services.runs.domain.run import Order, Run
from services.runs.domain.task_view import TaskView


@dataclass
class FakeRouting:
    """Implements `ports.Routing` over a table of Tasks that the test writes."""

    views: dict[str, TaskView] = field(default_factory=dict)
    submitted: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    withdrawn: list[str] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)
    fault: Fault | None = None
    """What every submission raises, if anything."""
    during_submit: Callable[[], Awaitable[None]] | None = None
    """What happens while a submission is on its way."""

    async def validate(self, tenant: str, order: Order) -> None:
        """Accept what the model's name does not forbid."""
        if order.model == "unknown":
            raise Fault.of("model_not_published", "no such model")

    async def submit(self, run: Run) -> None:
        """Note the Task."""
        if self.fault is not None:
            raise self.fault
        self.submitted.append(run.node.task_id)
        if self.during_submit is not None:
            await self.during_submit()

    async def withdraw(self, run: Run) -> None:
        """A Task that ends unsent, unless there is one."""
        self.withdrawn.append(run.node.task_id)
        self.views.setdefault(run.node.task_id, TaskView(run.node.task_id, 2, "cancelled", None))

    async def tasks(self, task_ids: Sequence[str]) -> Mapping[str, TaskView]:
        """Those that are known."""
        return {task_id: self.views[task_id] for task_id in task_ids if task_id in self.views}

    async def waiting_reason(self, task_id: str) -> str:
        """The reason of this moment, or the fault."""
        if self.fault is not None:
            raise self.fault
        return self.reasons.get(task_id, "")

    async def cancel(self, task_id: str) -> None:
        """Note the wish."""
        self.cancelled.append(task_id)
