"""What an account accepted, and the life of a task.

| state | submitted | started | rendered | failed | DELETE |
|---|---|---|---|---|---|
| queued | - | running | - | failed | cancelled |
| running | - | - | succeeded | failed | refused |
| succeeded, failed, expired | - | - | - | - | record deleted |
| cancelled | - | - | - | - | refused |
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

QUEUED, RUNNING, SUCCEEDED, FAILED, CANCELLED, EXPIRED = (
    "queued",
    "running",
    "succeeded",
    "failed",
    "cancelled",
    "expired",
)
ABANDONED = "abandoned"
"""A synchronous job whose caller hung up: no more was made, and what had been made is charged."""
STATES = (QUEUED, RUNNING, SUCCEEDED, FAILED, CANCELLED, EXPIRED)
ACTIVE = frozenset({QUEUED, RUNNING})
ON_DELETE = {
    QUEUED: "cancel",
    RUNNING: "refuse",
    SUCCEEDED: "forget",
    FAILED: "forget",
    EXPIRED: "forget",
    CANCELLED: "refuse",
}


@dataclass(frozen=True, slots=True)
class Voice:
    """A spoken text over one clip, by its number from 0, or over the whole film (None)."""

    source: str
    clip: int | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """A line to read while one clip is shown, by its number from 0, or from `start_s` to `end_s` of the film (None)."""

    text: str
    clip: int | None = None
    start_s: float = 0.0
    end_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Film:
    """Clips to join in their order. Seconds and pixels are those of the result, 0 until the clips are here."""

    clips: tuple[str, ...]
    voices: tuple[Voice, ...] = ()
    lines: tuple[Line, ...] = ()
    duration_s: float = 0.0
    width: int = 0
    height: int = 0


@dataclass(frozen=True, slots=True)
class VideoJob:
    """A clip to make. `expires_after_s` is the longest stay in the queue.

    With a `film` nothing is drawn: it is joined of what is there, and as long as that; `duration_s` counts started
    seconds.

    Materials are URLs (`data:` or `http(s):`) as they were asked for, names of kept files once the job is accepted.
    """

    prompt: str
    duration_s: int
    resolution: str
    ratio: str
    seed: int
    first_frame: str = ""
    last_frame: str = ""
    reference_images: tuple[str, ...] = ()
    reference_videos: tuple[str, ...] = ()
    reference_audios: tuple[str, ...] = ()
    audio: bool = True
    return_last_frame: bool = False
    watermark: bool = False
    safety_identifier: str = ""
    service_tier: str = "default"
    expires_after_s: int = 172_800
    film: Film | None = None


@dataclass(frozen=True, slots=True)
class ImageJob:
    """`n` pictures of `width` x `height` pixels. `encoding` is png, jpeg or webp; `as_url` asks for links."""

    prompt: str
    width: int
    height: int
    n: int
    seed: int
    references: tuple[str, ...] = ()
    encoding: str = "png"
    as_url: bool = False


@dataclass(frozen=True, slots=True)
class SpeechJob:
    """Words to say. `rate` is 1.0 for the natural pace; `encoding` is wav or mp3."""

    text: str
    voice: str
    rate: float = 1.0
    encoding: str = "mp3"


@dataclass(frozen=True, slots=True)
class Failure:
    """How a task failed, in the words of the dialect."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Task:
    """One accepted asynchronous job, times in epoch seconds. `fate` is the end that a script or a marker chose.

    `pictures` is what to draw where the job is no clip; `job` then holds its words alone.
    """

    id: str
    account: str
    model: str
    status: str
    job: VideoJob
    created_at: float
    updated_at: float
    fate: Failure | None = None
    expire: bool = False
    error: Failure | None = None
    files: dict[str, str] = field(default_factory=dict)
    usage: dict[str, Any] = field(default_factory=dict)
    pictures: ImageJob | None = None
