"""Video tasks in the Kling dialect: create, get, look up by the caller's own id, list."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from services.studio.dialects import kling
from services.studio.domain.jobs import Task
from services.studio.domain.refusals import Reason, Refusal
from services.studio.routes.door import Call
from services.studio.routes.tasks import TaskRoutes

PAGE = 30


class KlingRoutes(TaskRoutes):
    """The handlers; each runs behind a Door."""

    async def create(self, call: Call) -> Response:
        """POST: takes a job on; an external id that the account has used is refused."""
        external = str(call.body.get("external_task_id") or "")
        if external and self._of_token(call, external) is not None:
            raise Refusal(Reason.PARAMETER_INVALID, "external_task_id already exists", "external_task_id")
        return JSONResponse(kling.created_view(await self._taken_on(call), call.request_id))

    async def get(self, call: Call) -> Response:
        """GET one task; a failed one is a 200 too."""
        return JSONResponse(kling.task_view(self._task_of(call), call.link, call.request_id))

    async def list(self, call: Call) -> Response:
        """GET the task of `external_task_id`, or without it the newest."""
        external = call.request.query_params.get("external_task_id")
        if not external:
            newest = self._desk.archive.tasks(call.account.id)[:PAGE]
            return JSONResponse(kling.list_view(newest, call.request_id))
        task = self._of_token(call, external)
        if task is None:
            raise Refusal(Reason.TASK_UNKNOWN, f"task {external} is not found", "external_task_id")
        return JSONResponse(kling.task_view(task, call.link, call.request_id))

    def _of_token(self, call: Call, external: str) -> Task | None:
        tasks = self._desk.archive.tasks(call.account.id)
        return next((task for task in tasks if task.job.safety_identifier == external), None)
