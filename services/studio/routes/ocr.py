"""Reading pictures in the local-ocr dialect."""

from __future__ import annotations

import asyncio
from pathlib import Path

from PIL import Image
from starlette.responses import JSONResponse, Response

from services.studio.desk import Desk
from services.studio.dialects import local_ocr
from services.studio.domain.jobs import FAILED, SUCCEEDED
from services.studio.domain.pace import pace_of
from services.studio.domain.prices import page_charge
from services.studio.domain.refusals import Reason, Refusal
from services.studio.media import materials
from services.studio.reading import pages
from services.studio.reading.pages import MOST_PAGES, MOST_PIXELS, Block
from services.studio.routes.accepted import Accepted
from services.studio.routes.door import Call, model_of


class OcrRoutes:
    """The handlers; each runs behind a Door."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._shelf = desk.shelf

    async def read(self, call: Call) -> Response:
        """POST a picture: what is written in it. A file of several pictures has several pages."""
        model = model_of(call, "ocr")
        job = local_ocr.read_ocr(call.body, model)
        path = self._desk.inputs / await materials.keep(job.url, self._desk.inputs, image=True)
        count = await asyncio.to_thread(_pages_of, path, model.max_bytes)
        accepted = Accepted(self._desk, call, "ocr", model, page_charge(model.price, count))
        try:
            found = await asyncio.to_thread(self._read, path, job.layout)
            await asyncio.sleep(pace_of(call.account, call.step.flow).due(1))
        except BaseException:
            accepted.settle(FAILED, page_charge(model.price, count), {"pages": count})
            raise
        accepted.settle(SUCCEEDED, page_charge(model.price, count), {"pages": count})
        return JSONResponse(local_ocr.ocr_view(found))

    def _read(self, path: Path, layout: bool) -> list[list[Block]]:
        with Image.open(path) as picture:
            if self._shelf.reader is not None:
                return self._shelf.reader.read(picture, layout)
            return pages.read(picture, layout)


def _pages_of(path: Path, most_bytes: int) -> int:
    """How many pages there are to read. Raises Refusal for what is too much."""
    with Image.open(path) as picture:
        count = getattr(picture, "n_frames", 1)
        if path.stat().st_size > most_bytes:
            raise Refusal(Reason.PARAMETER_INVALID, f"image has at most {most_bytes} bytes", "image")
        if count > MOST_PAGES or picture.width * picture.height > MOST_PIXELS:
            text = f"image has at most {MOST_PAGES} pages of {MOST_PIXELS} pixels"
            raise Refusal(Reason.PARAMETER_INVALID, text, "image")
    return count
