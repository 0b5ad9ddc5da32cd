"""PP-OCR by rapidocr and onnxruntime: reads any font, and Chinese."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from PIL import Image, ImageSequence
from rapidocr import RapidOCR

from services.studio.reading.finding import Box
from services.studio.reading.pages import LINE, MOST_PAGES, Block, laid_out


class Paddle:
    """The models for finding and for reading lines. One page at a time."""

    def __init__(self) -> None:
        self._engine: Any = None
        self._busy = threading.Lock()

    def read(self, picture: Image.Image, layout: bool) -> list[list[Block]]:
        """Implements Reader."""
        pages = []
        with self._busy:
            if self._engine is None:
                self._engine = RapidOCR(params={"Global.log_level": "warning"})
            for _, frame in zip(range(MOST_PAGES), ImageSequence.Iterator(picture), strict=False):
                found = self._lines(frame)
                pages.append(laid_out(found) if layout else found)
        return pages

    def _lines(self, frame: Image.Image) -> list[Block]:
        told = self._engine(np.asarray(frame.convert("RGB"))[:, :, ::-1])
        if told.txts is None:
            return []
        return [
            Block(text, _box(corners), round(float(sure), 4), LINE, float(_box(corners).height))
            for text, sure, corners in zip(told.txts, told.scores, told.boxes, strict=True)
        ]


def _box(corners: Any) -> Box:
    (left, top), (right, bottom) = corners.min(axis=0), corners.max(axis=0)
    return Box(int(left), int(top), int(right), int(bottom))
