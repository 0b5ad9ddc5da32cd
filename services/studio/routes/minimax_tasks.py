"""Video tasks in the MiniMax dialect: create, ask, and by the second interface list, cancel or delete."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from services.studio.dialects import minimax
from services.studio.domain import jobs
from services.studio.domain.jobs import Task
from services.studio.domain.refusals import Reason, Refusal
from services.studio.routes.door import Call
from services.studio.routes.tasks import TaskRoutes

PAGE = 20
MOST_PER_PAGE = 500
_ACTIONS = {"cancel": "cancelled", "forget": "deleted"}


class MiniMaxRoutes(TaskRoutes):
    """The handlers; each runs behind a Door."""

    async def create(self, call: Call) -> Response:
        """POST of either interface: takes a job on and answers its id."""
        second = call.path.startswith("/v2/")
        if second != ("content" in call.body):
            raise Refusal(Reason.PARAMETER_INVALID, "invalid params, this model belongs to another version", "model")
        task = await self._taken_on(call)
        told = {"task_id": task.id}
        return JSONResponse(told if second else told | minimax.answer(0, "success"))

    async def ask(self, call: Call) -> Response:
        """GET one task of the first interface by `task_id`; a failed one is a 200 too."""
        return JSONResponse(minimax.first_view(self._named(call, "task_id")))

    async def file(self, call: Call) -> Response:
        """GET the file of a finished task by `file_id`."""
        task = self._named(call, "file_id")
        if task.status != jobs.SUCCEEDED:
            raise Refusal(Reason.TASK_UNKNOWN, "invalid params, file_id", "file_id")
        return JSONResponse(minimax.file_view(task, call.link))

    async def get(self, call: Call) -> Response:
        """GET one task of the second interface."""
        return JSONResponse({"task": minimax.task_of(self._task_of(call), call.link)})

    async def list(self, call: Call) -> Response:
        """GET tasks, newest first, filtered and paged."""
        query = call.request.query_params
        page, size = (self._number(call, name, default) for name, default in (("page_num", 1), ("page_size", PAGE)))
        found = [
            task
            for task in self._desk.archive.tasks(call.account.id)
            if query.get("filter.status", task.status) == task.status
            and query.get("filter.model", task.model) == task.model
        ]
        items = [minimax.task_of(task, call.link) for task in found[(page - 1) * size : page * size]]
        return JSONResponse({"items": items, "total": len(found)})

    async def delete(self, call: Call) -> Response:
        """DELETE: cancels a queued task, forgets an ended one, refuses otherwise."""
        task = self._task_of(call)
        action = jobs.ON_DELETE[task.status]
        if action == "refuse":
            raise Refusal(Reason.TASK_RUNNING, f"invalid params, task is {task.status}", "task_id")
        if action == "cancel":
            await self._renders.cancel(task)
        else:
            self._desk.archive.forget_task(task.id)
        return JSONResponse({"task_id": task.id, "action": _ACTIONS[action], **minimax.answer(0, "success")})

    def _task_of(self, call: Call) -> Task:
        return self._known(call, call.request.path_params["task_id"])

    def _named(self, call: Call, name: str) -> Task:
        return self._known(call, call.request.query_params.get(name, ""))

    def _known(self, call: Call, task_id: str) -> Task:
        task = self._desk.archive.task(call.account.id, task_id)
        if task is None:
            raise Refusal(Reason.TASK_UNKNOWN, "invalid params, invalid task_id", "task_id")
        return task

    @staticmethod
    def _number(call: Call, name: str, default: int) -> int:
        given = call.request.query_params.get(name, str(default))
        if not given.isdecimal() or not 1 <= int(given) <= MOST_PER_PAGE:
            raise Refusal(Reason.PARAMETER_INVALID, f"invalid params, {name}", name)
        return int(given)
