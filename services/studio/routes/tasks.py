"""Video tasks in the Ark dialect: create, get, list, cancel or delete."""

from __future__ import annotations

import secrets
from dataclasses import replace
from datetime import UTC, datetime
from math import ceil
from pathlib import Path

from PIL import Image
from starlette.responses import JSONResponse, Response

from services.studio.desk import Desk
from services.studio.dialects import ark
from services.studio.domain import jobs, markers
from services.studio.domain.accounts import Model
from services.studio.domain.jobs import Failure, Film, ImageJob, Task, VideoJob
from services.studio.domain.prices import RATIOS, image_charge, video_charge
from services.studio.domain.refusals import Reason, Refusal
from services.studio.media import films, materials
from services.studio.media.ffmpeg import RenderError
from services.studio.renders import Renders
from services.studio.routes.door import Call, accept, check_prompt, model_of

MOST_PER_PAGE = 500


class TaskRoutes:
    """The handlers; each runs behind a Door."""

    def __init__(self, desk: Desk, renders: Renders) -> None:
        self._desk = desk
        self._renders = renders

    async def create(self, call: Call) -> Response:
        """POST: takes a job on and answers its id."""
        return JSONResponse({"id": (await self._taken_on(call)).id})

    async def _taken_on(self, call: Call, *kinds: str) -> Task:
        model = model_of(call, *(kinds or ("video",)))
        job, pictures = self._read(call, model)
        check_prompt(call, job.prompt)
        self._desk.take_slot(call.account, model)
        try:
            if pictures is None:
                job = await (self._with_materials(job) if job.film is None else self._with_parts(job, job.film, model))
                charge = video_charge(model.price, job)
            else:
                pictures = await self._with_references(pictures)
                charge = image_charge(model.price, pictures, pictures.n)
            task = replace(self._task(call, model.id, job), pictures=pictures)
            accept(self._desk, call, model.kind, model, amount(charge), task)
        except BaseException:
            self._desk.free_slot(call.account.id, model.id)
            raise
        self._renders.take(task)
        return task

    async def get(self, call: Call) -> Response:
        """GET one task; a failed one is a 200 too."""
        return JSONResponse(ark.task_view(self._task_of(call), call.link))

    async def list(self, call: Call) -> Response:
        """GET tasks, newest first, filtered and paged; `filter.task_ids` may be repeated or comma-separated."""
        query = call.request.query_params
        page, size = (_number(query.get(name), name, default) for name, default in (("page_num", 1), ("page_size", 10)))
        wanted = {task_id for given in query.getlist("filter.task_ids") for task_id in given.split(",")}
        found = [
            task
            for task in self._desk.archive.tasks(call.account.id)
            if query.get("filter.status", task.status) == task.status
            and query.get("filter.model", task.model) == task.model
            and query.get("filter.service_tier", task.job.service_tier) == task.job.service_tier
            and (not wanted or task.id in wanted)
        ]
        items = [ark.task_view(task, call.link) for task in found[(page - 1) * size : page * size]]
        return JSONResponse({"items": items, "total": len(found)})

    async def delete(self, call: Call) -> Response:
        """DELETE: cancels a queued task, forgets a finished one, refuses otherwise."""
        task = self._task_of(call)
        action = jobs.ON_DELETE[task.status]
        if action == "refuse":
            raise Refusal(Reason.TASK_RUNNING, f"The task {task.id} is {task.status} and cannot be deleted.", "id")
        if action == "cancel":
            await self._renders.cancel(task)
        else:
            self._desk.archive.forget_task(task.id)
        return JSONResponse({})

    def _read(self, call: Call, model: Model) -> tuple[VideoJob, ImageJob | None]:
        """What is asked for: a clip, or pictures with their words."""
        return call.dialect.read_video(call.body, model), None

    def _new_id(self, now: float) -> str:
        stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%d%H%M%S")
        return f"cgt-{stamp}-{secrets.token_hex(4)}"

    def _task_of(self, call: Call) -> Task:
        task_id = call.request.path_params["task_id"]
        task = self._desk.archive.task(call.account.id, task_id)
        if task is None:
            raise Refusal(Reason.TASK_UNKNOWN, f"The specified task {task_id} is not found.", "id")
        return task

    def _task(self, call: Call, model: str, job: VideoJob) -> Task:
        now = self._desk.now()
        reason = markers.late(job.prompt, call.account.real_person)
        dialect = call.dialect
        fate = call.fate or (Failure(str(dialect.CODES[reason][1]), dialect.MESSAGES[reason]) if reason else None)
        task_id, expire = self._new_id(now), call.step.expire_task
        return Task(task_id, call.account.id, model, jobs.QUEUED, job, now, now, fate=fate, expire=expire)

    async def _with_references(self, pictures: ImageJob) -> ImageJob:
        """The pictures to draw with their references kept under `inputs` and their seed chosen."""
        kept = [await materials.keep(url, self._desk.inputs, image=True) for url in pictures.references]
        seed = secrets.randbelow(2**31) if pictures.seed < 0 else pictures.seed
        return replace(pictures, references=tuple(kept), seed=seed)

    async def _with_materials(self, job: VideoJob) -> VideoJob:
        """The job with its materials kept under `inputs`, its ratio decided and its seed chosen."""
        folder = self._desk.inputs

        async def kept(urls: tuple[str, ...], image: bool = False) -> tuple[str, ...]:
            return tuple([await materials.keep(url, folder, image=image) for url in urls])

        frames = await kept(tuple(filter(None, (job.first_frame, job.last_frame))), image=True)
        images = await kept(job.reference_images, image=True)
        ratio = job.ratio
        if ratio == "adaptive":
            ratio = _ratio_of(folder / next(iter((*frames, *images)))) if frames or images else "16:9"
        return replace(
            job,
            first_frame=frames[0] if frames else "",
            last_frame=frames[1] if len(frames) > 1 else "",
            reference_images=images,
            reference_videos=await kept(job.reference_videos),
            reference_audios=await kept(job.reference_audios),
            ratio=ratio,
            seed=secrets.randbelow(2**32) if job.seed < 0 else job.seed,
        )

    async def _with_parts(self, job: VideoJob, film: Film, model: Model) -> VideoJob:
        """The job of a film with its parts kept under `inputs`, looked at and added up."""
        folder = self._desk.inputs

        async def kept(url: str) -> str:
            return await materials.keep(url, folder, image=False)

        names = [await kept(url) for url in film.clips]
        voices = [replace(voice, source=await kept(voice.source)) for voice in film.voices]
        try:
            parts = await films.survey([folder / name for name in names])
            spoken = await films.survey([folder / voice.source for voice in voices])
        except RenderError as error:
            raise Refusal(
                Reason.MATERIAL_UNREADABLE, f"A part of the film cannot be read: {error}.", "content"
            ) from error
        if not all(part.pictures for part in parts) or not all(part.sound for part in spoken):
            raise Refusal(Reason.MATERIAL_UNREADABLE, "A clip has no pictures or a narration no sound.", "content")
        seconds = films.length(parts)
        if seconds > model.film_max_s or any(line.start_s >= seconds for line in film.lines):
            text = (
                f"The film lasts {seconds:g} s: {model.film_max_s} s are allowed, and every line begins before its end."
            )
            raise Refusal(Reason.PARAMETER_INVALID, text, "content")
        width, height = films.frame(parts)
        film = replace(film, clips=tuple(names), voices=tuple(voices), duration_s=seconds, width=width, height=height)
        named = f"{min(width, height)}p"
        return replace(job, duration_s=ceil(seconds), film=film, resolution=named, ratio=_nearest(width / height))


def amount(value: object) -> str:
    """A decimal amount without a trailing exponent or idle zeros, at least two places: "4.00", "0.0123"."""
    text = f"{value:f}"
    whole, _, places = text.partition(".")
    return f"{whole}.{places.rstrip('0').ljust(2, '0')}"


def _ratio_of(path: Path) -> str:
    with Image.open(path) as picture:
        return _nearest(picture.width / picture.height)


def _nearest(shape: float) -> str:
    def distance(ratio: str) -> float:
        width, _, height = ratio.partition(":")
        return abs(shape - int(width) / int(height))

    return min(RATIOS, key=distance)


def _number(given: str | None, name: str, default: int) -> int:
    if given is None:
        return default
    if not given.isdigit() or not 1 <= int(given) <= MOST_PER_PAGE:
        raise Refusal(Reason.PARAMETER_INVALID, f"The parameter `{name}` is not valid.", name)
    return int(given)
