"""Tasks in the dialects of the queues: fal's requests, Replicate's predictions, DashScope's tasks, OpenAI's clips.

Each class names its own paths in `menu`. A job carries its caller's token, which none of these dialects echoes.
"""

from __future__ import annotations

import secrets
import uuid
from dataclasses import replace

from starlette.responses import FileResponse, JSONResponse, Response

from services.studio.dialects import dashscope, fal, openai_videos, replicate
from services.studio.domain import jobs
from services.studio.domain.accounts import Model
from services.studio.domain.jobs import ImageJob, Task, VideoJob
from services.studio.domain.refusals import Reason, Refusal
from services.studio.routes.door import Call, Handler
from services.studio.routes.tasks import TaskRoutes

Menu = list[tuple[str, str, Handler]]
BOTH = ("video", "image")


class QueueRoutes(TaskRoutes):
    """What they share: ids, and inputs that may ask for pictures."""

    def _new_id(self, now: float) -> str:
        return str(uuid.UUID(bytes=secrets.token_bytes(16), version=4))

    def _read(self, call: Call, model: Model) -> tuple[VideoJob, ImageJob | None]:
        if model.kind == "image":
            pictures: ImageJob = call.dialect.read_image(call.body, model)
            return VideoJob(pictures.prompt, 0, "", "", pictures.seed, safety_identifier=call.client_token), pictures
        return replace(call.dialect.read_video(call.body, model), safety_identifier=call.client_token), None

    def _address(self, call: Call, path: str) -> str:
        """A public URL of this account, at the address by which the caller came."""
        return f"{call.request.url.scheme}://{call.request.url.netloc}/{call.account.id}{path}"


class FalRoutes(QueueRoutes):
    """fal: requests are put in under the whole id of a model, and asked about under owner and app."""

    def menu(self) -> Menu:
        """Method, path and handler."""
        request = "/{owner}/{app}/requests/{task_id}"
        deeper = "/{owner}/{app}/{rest:path}/requests/{task_id}"
        return [
            ("GET", f"{request}/status", self.status),
            ("GET", request, self.result),
            ("PUT", f"{request}/cancel", self.cancel),
            ("GET", f"{deeper}/status", self.elsewhere),
            ("GET", deeper, self.elsewhere),
            ("PUT", f"{deeper}/cancel", self.elsewhere),
            ("POST", "/{model:path}", self.create),
        ]

    async def create(self, call: Call) -> Response:
        """POST: puts a request into the queue."""
        task = await self._taken_on(call, *BOTH)
        return JSONResponse(fal.created_view(task, self._app(call, task)))

    async def status(self, call: Call) -> Response:
        """GET the status: 202 while it is under way."""
        task = self._of_app(call)
        code, body = fal.status_view(task, self._app(call, task))
        return JSONResponse(body, code, {fal.ERROR_TYPE: body["error_type"]} if "error_type" in body else None)

    async def result(self, call: Call) -> Response:
        """GET the result, or the error in which the request ended."""
        task = self._of_app(call)
        code, body = fal.result_view(task, call.link)
        return JSONResponse(body, code, {fal.UNITS: fal.units(task)} if code == 200 else None)

    async def cancel(self, call: Call) -> Response:
        """PUT: takes a waiting request out; a running one is only told of the wish, and does not heed it."""
        task = self._desk.archive.task(call.account.id, call.request.path_params["task_id"])
        if task is None:
            return JSONResponse({"status": "NOT_FOUND"}, 404)
        if task.status == jobs.RUNNING:
            return JSONResponse({"status": "CANCELLATION_REQUESTED"}, 202)
        if task.status != jobs.QUEUED:
            return JSONResponse({"status": "ALREADY_COMPLETED"}, 400)
        await self._renders.cancel(task)
        return JSONResponse({"status": "OK"})

    async def elsewhere(self, call: Call) -> Response:
        """Under the path of an endpoint there are no requests."""
        return Response(status_code=405)

    def _of_app(self, call: Call) -> Task:
        task, asked = self._task_of(call), call.request.path_params
        if task.model.split("/")[:2] != [asked["owner"], asked["app"]]:
            raise Refusal(Reason.TASK_UNKNOWN, "Request not found")
        return task

    def _app(self, call: Call, task: Task) -> str:
        return self._address(call, "/" + "/".join(task.model.split("/")[:2]))


class ReplicateRoutes(QueueRoutes):
    """Replicate: predictions of a model or of a version."""

    def menu(self) -> Menu:
        """Method, path and handler."""
        return [
            ("POST", "/models/{owner}/{name}/predictions", self.create),
            ("POST", "/predictions", self.create),
            ("GET", "/predictions", self.list),
            ("GET", "/predictions/{task_id}", self.get),
            ("POST", "/predictions/{task_id}/cancel", self.cancel),
        ]

    async def create(self, call: Call) -> Response:
        """POST: creates a prediction."""
        return self._view(call, await self._taken_on(call, *BOTH), 201)

    async def get(self, call: Call) -> Response:
        """GET one prediction."""
        return self._view(call, self._task_of(call), 200)

    async def list(self, call: Call) -> Response:
        """GET predictions, newest first, page by page behind a mark."""
        cursor = call.request.query_params.get("cursor", "")
        page, following = replicate.page_of(self._desk.archive.tasks(call.account.id), cursor)
        base = self._address(call, f"{replicate.BASE}/predictions")
        results = [replicate.prediction_view(task, call.link, base) for task in page]
        after = f"{base}?cursor={following}" if following else None
        return JSONResponse({"next": after, "previous": None, "results": results})

    async def cancel(self, call: Call) -> Response:
        """POST: stops a prediction that waits or runs; one that has ended stays as it is."""
        task = self._task_of(call)
        if task.status in jobs.ACTIVE:
            await self._renders.cancel(task)
        return self._view(call, self._task_of(call), 200)

    def _view(self, call: Call, task: Task, status: int) -> Response:
        base = self._address(call, f"{replicate.BASE}/predictions")
        return JSONResponse(replicate.prediction_view(task, call.link, base), status)

    def _new_id(self, now: float) -> str:
        letters = "abcdefghijklmnopqrstuvwxyz0123456789"
        return "".join(secrets.choice(letters) for _ in range(26))


class DashScopeRoutes(QueueRoutes):
    """DashScope: tasks, asked for by a header."""

    def menu(self) -> Menu:
        """Method, path and handler."""
        return [
            ("POST", dashscope.VIDEOS, self.create),
            *(("POST", path, self.create) for path in dashscope.PICTURES),
            ("GET", "/tasks", self.list),
            ("GET", "/tasks/{task_id}", self.get),
            ("POST", "/tasks/{task_id}/cancel", self.cancel),
        ]

    async def create(self, call: Call) -> Response:
        """POST: takes a task on."""
        if call.request.headers.get(dashscope.ASYNC, "").lower() != "enable":
            status, body = dashscope.not_asynchronous(call.request_id)
            self._desk.archive.refused(call.post, status, "AccessDenied")
            return JSONResponse(body, status)
        kind = "video" if call.path.endswith(dashscope.VIDEOS) else "image"
        return JSONResponse(dashscope.created_view(await self._taken_on(call, kind), call.request_id))

    async def get(self, call: Call) -> Response:
        """GET one task; one that nobody knows is UNKNOWN under a 200."""
        task_id = call.request.path_params["task_id"]
        task = self._desk.archive.task(call.account.id, task_id)
        if task is None:
            return JSONResponse(dashscope.unknown_view(task_id, call.request_id))
        return JSONResponse(dashscope.task_view(task, call.link, call.request_id))

    async def list(self, call: Call) -> Response:
        """GET tasks, newest first, page by page."""
        query = call.request.query_params
        page, size = (_count(query.get(name), default) for name, default in (("page_no", 1), ("page_size", 10)))
        tasks = self._desk.archive.tasks(call.account.id)
        return JSONResponse(dashscope.list_view(tasks, page, size, call.request_id))

    async def cancel(self, call: Call) -> Response:
        """POST: stops a pending task, and refuses for any other."""
        task = self._task_of(call)
        if task.status != jobs.QUEUED:
            raise Refusal(Reason.TASK_RUNNING, "")
        await self._renders.cancel(task)
        return JSONResponse({"request_id": call.request_id})


class OpenAIVideoRoutes(QueueRoutes):
    """OpenAI: clips, their list, and their bytes behind the key."""

    def menu(self) -> Menu:
        """Method, path and handler."""
        return [
            ("POST", "/videos", self.create),
            ("GET", "/videos", self.list),
            ("GET", "/videos/{task_id}", self.get),
            ("GET", "/videos/{task_id}/content", self.content),
        ]

    async def create(self, call: Call) -> Response:
        """POST: takes a clip on."""
        return JSONResponse(openai_videos.video_view(await self._taken_on(call)))

    async def get(self, call: Call) -> Response:
        """GET one clip."""
        return JSONResponse(openai_videos.video_view(self._task_of(call)))

    async def list(self, call: Call) -> Response:
        """GET clips, newest first, behind the one of id `after`."""
        query = call.request.query_params
        limit = min(_count(query.get("limit"), openai_videos.PAGE), openai_videos.MOST)
        tasks = self._desk.archive.tasks(call.account.id)
        return JSONResponse(openai_videos.list_view(tasks, query.get("after", ""), limit))

    async def content(self, call: Call) -> Response:
        """GET the bytes of a clip that is done."""
        task = self._task_of(call)
        if task.status != jobs.SUCCEEDED:
            raise Refusal(Reason.TASK_UNKNOWN, f"Video {task.id} is not ready yet.")
        return FileResponse(self._desk.files / task.files["video"], media_type="video/mp4")

    def _read(self, call: Call, model: Model) -> tuple[VideoJob, ImageJob | None]:
        return replace(openai_videos.read_video(call.body, model), safety_identifier=call.client_token), None

    def _new_id(self, now: float) -> str:
        return f"video_{secrets.token_hex(16)}"


def _count(given: str | None, default: int) -> int:
    return int(given) if given and given.isdigit() and int(given) > 0 else default
