"""Synchronous work: pictures in both dialects, speech and models in OpenAI's, and the files that were made."""

from __future__ import annotations

import asyncio
import base64
import secrets
from collections.abc import Awaitable, Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

from starlette.responses import FileResponse, JSONResponse, Response

from services.studio.desk import Desk
from services.studio.dialects import ark, openai
from services.studio.domain import markers
from services.studio.domain.accounts import Account, Model
from services.studio.domain.jobs import FAILED, SUCCEEDED, ImageJob
from services.studio.domain.prices import image_charge, speech_charge
from services.studio.domain.refusals import Reason, Refusal
from services.studio.media import materials, pictures, voice
from services.studio.routes.accepted import Accepted
from services.studio.routes.door import Call, check_prompt, model_of

MEDIA_TYPES = {"mp4": "video/mp4", "png": "image/png", "jpeg": "image/jpeg", "webp": "image/webp"}


class WorkRoutes:
    """The handlers; each runs behind a Door."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def ark_images(self, call: Call) -> Response:
        """POST Seedream pictures; a picture that moderation stops is an error item in a 200."""
        model = model_of(call, "image")
        job = ark.read_image(call.body, model)
        check_prompt(call, job.prompt)

        references = await self._kept(job)

        async def work() -> tuple[Response, int]:
            names = await self._pictures(call, model, job, references)
            data = [self._item(call, job, name) | {"size": f"{job.width}x{job.height}"} for name in names]
            if markers.late(job.prompt, call.account.real_person):
                text = "The request failed because the output image may contain sensitive information."
                data[-1] = {"error": {"code": "OutputImageSensitiveContentDetected", "message": text}}
            view = ark.image_view(model.id, int(self._desk.now()), job, data)
            return JSONResponse(view), view["usage"]["generated_images"]

        return await self._image_job(call, model, job, work)

    async def openai_images(self, call: Call) -> Response:
        """POST pictures; moderation of the output refuses the whole request."""
        model = model_of(call, "image")
        job = openai.read_image(call.body, model)
        check_prompt(call, job.prompt)

        references = await self._kept(job)

        async def work() -> tuple[Response, int]:
            names = await self._pictures(call, model, job, references)
            reason = markers.late(job.prompt, call.account.real_person)
            if reason is not None:
                raise Refusal(reason, "")
            data = [self._item(call, job, name) for name in names]
            return JSONResponse(openai.image_view(int(self._desk.now()), job, data)), job.n

        return await self._image_job(call, model, job, work)

    async def speech(self, call: Call) -> Response:
        """POST speech; answers the sound itself."""
        model = model_of(call, "speech")
        job = openai.read_speech(call.body, model)
        check_prompt(call, job.text)
        price = speech_charge(model.price, job)

        async def work() -> tuple[Response, Decimal, dict[str, int]]:
            media_type = "audio/wav" if job.encoding == "wav" else "audio/mpeg"
            return Response(await voice.make(job), media_type=media_type), price, {"characters": len(job.text)}

        return await self._accepted(call, model, "speech", price, work)

    async def models(self, call: Call) -> Response:
        """GET the models of the account."""
        view = openai.models_view(call.account.models.values(), call.account.id, int(self._desk.started_at))
        return JSONResponse(view)

    async def one_model(self, call: Call) -> Response:
        """GET one model of the account."""
        model = call.account.models.get(call.request.path_params["model"])
        if model is None:
            raise openai.model_unknown(call.request.path_params["model"])
        return JSONResponse(openai.model_view(model, call.account.id, int(self._desk.started_at)))

    async def file(self, call: Call) -> Response:
        """GET a file; its name is the secret, as in a signed link."""
        name = call.request.path_params["name"]
        path = self._desk.files / name
        if "/" in name or not path.is_file():
            raise Refusal(Reason.TASK_UNKNOWN, f"There is no file {name}.")
        return FileResponse(path, media_type=MEDIA_TYPES.get(path.suffix[1:], "application/octet-stream"))

    async def _image_job(
        self, call: Call, model: Model, job: ImageJob, work: Callable[[], Awaitable[tuple[Response, int]]]
    ) -> Response:
        async def priced() -> tuple[Response, Decimal, dict[str, int]]:
            response, made = await work()
            return response, image_charge(model.price, job, made), {"images": made}

        return await self._accepted(call, model, "image", image_charge(model.price, job, job.n), priced)

    async def _accepted(
        self,
        call: Call,
        model: Model,
        kind: str,
        price: Decimal,
        work: Callable[[], Awaitable[tuple[Response, Decimal, dict[str, int]]]],
    ) -> Response:
        """Takes the job on, does it, and settles it at what the work says it used and cost; a failed one is free."""
        accepted = Accepted(self._desk, call, kind, model, price)
        started_at = self._desk.now()
        try:
            response, charge, usage = await work()
            await asyncio.sleep(max(0.0, self._ends_at(call.account, started_at) - self._desk.now()))
        except BaseException:
            accepted.settle(FAILED, price, {})
            raise
        accepted.settle(SUCCEEDED, charge, usage)
        return response

    def _ends_at(self, account: Account, started_at: float) -> float:
        return started_at + (account.queue_s + account.render_s) / account.speed

    async def _kept(self, job: ImageJob) -> list[Path]:
        """The reference pictures as files. Raises Refusal before anything is accepted."""
        folder = self._desk.inputs
        return [folder / await materials.keep(url, folder, image=True) for url in job.references]

    async def _pictures(self, call: Call, model: Model, job: ImageJob, references: list[Path]) -> list[str]:
        """Draws the pictures into files and gives their names."""
        seed = job.seed if job.seed >= 0 else secrets.randbelow(2**31)
        style = call.account.style
        signature = f"{call.account.id} · {model.id.removeprefix('doubao-')}"

        def draw(index: int) -> str:
            content = pictures.made(job, seed + index, references, style, signature)
            name = f"img-{secrets.token_hex(8)}.{job.encoding}"
            (self._desk.files / name).write_bytes(content)
            return name

        return [await asyncio.to_thread(draw, index) for index in range(job.n)]

    def _item(self, call: Call, job: ImageJob, name: str) -> dict[str, Any]:
        if job.as_url:
            return {"url": call.link(name)}
        return {"b64_json": base64.b64encode((self._desk.files / name).read_bytes()).decode()}
