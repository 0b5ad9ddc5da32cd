"""Clips with ffmpeg: a slow camera over stills, cut in one go, with the maker's badge, frame and a quiet tone.

Drawn smaller than the nominal resolution, so that a burst of clips costs little: about 0.15 s of processor time each.
"""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from services.studio.domain.accounts import Style
from services.studio.domain.jobs import VideoJob
from services.studio.media import pictures
from services.studio.media.ffmpeg import run
from services.studio.settings import Render

SIZES = {
    "16:9": (640, 360),
    "9:16": (360, 640),
    "4:3": (560, 420),
    "3:4": (420, 560),
    "1:1": (480, 480),
    "21:9": (672, 288),
}
MARGIN = 1.3  # stills are larger than the clip by this much: the room the camera moves in
MOST_STILLS = 3
WORK_PREFIX = "clip-"  # folders beside `inputs`; what a killed process left of them is swept at the next start


@dataclass(frozen=True, slots=True)
class Clip:
    """What to draw and where: `inputs` holds the kept materials, `target` is the mp4, `signature` names the maker."""

    job: VideoJob
    style: Style
    signature: str
    render: Render
    inputs: Path
    target: Path


def pixels(ratio: str, scale: float) -> tuple[int, int]:
    """The real size of a clip; both sides are even, as H.264 wants."""
    width, height = SIZES[ratio]
    return max(2, round(width * scale / 2) * 2), max(2, round(height * scale / 2) * 2)


async def make(clip: Clip) -> None:
    """Makes the clip, and `<target>.png` of its last still when the job asks for it. Raises RenderError."""
    with tempfile.TemporaryDirectory(prefix=WORK_PREFIX, dir=clip.inputs.parent) as folder:
        work = Path(folder)
        videos = [await _frame_of(clip.inputs / name, work, name) for name in clip.job.reference_videos]
        stills = await asyncio.to_thread(_stills, clip, work, videos)
        part = work / "clip.mp4"
        await run(_arguments(clip, work, stills, part))
        part.replace(clip.target)


async def _frame_of(video: Path, work: Path, name: str) -> Path:
    frame = work / f"{name}.png"
    await run(["-i", str(video), "-frames:v", "1", str(frame)])
    return frame


def _stills(clip: Clip, work: Path, videos: list[Path]) -> list[Path]:
    job = clip.job
    size = pixels(job.ratio, clip.render.scale)
    large = (round(size[0] * MARGIN), round(size[1] * MARGIN))
    if job.first_frame:
        sources = [clip.inputs / name for name in (job.first_frame, job.last_frame) if name]
    else:
        sources = [*(clip.inputs / name for name in job.reference_images), *videos][:MOST_STILLS]
    drawn = [pictures.still(path, large) for path in sources]
    if not drawn:
        drawn = [pictures.scene(job.prompt, job.seed, large, clip.style)]
    paths = []
    for index, picture in enumerate(drawn):
        path = work / f"still-{index}.ppm"
        picture.save(path)
        paths.append(path)
    strip = pictures.badge(size[0], clip.signature, clip.style, job.prompt)
    strip.save(work / "badge.ppm")
    if job.return_last_frame:
        last = drawn[-1].resize(size, Image.Resampling.BILINEAR)
        last.paste(strip, (0, size[1] - strip.height))
        clip.target.with_suffix(".png").write_bytes(pictures.encoded(last, "png"))
    return paths


def _arguments(clip: Clip, work: Path, stills: list[Path], target: Path) -> list[str]:
    job, render = clip.job, clip.render
    width, height = pixels(job.ratio, render.scale)
    frames = job.duration_s * render.fps
    inputs: list[str] = []
    chains = []
    for index, path in enumerate(stills):
        inputs += ["-i", str(path)]
        share = frames * (index + 1) // len(stills) - frames * index // len(stills)
        chains.append(
            f"[{index}]format=yuv420p,{_camera(job.seed + index, share)}:d={share}"
            f":s={width}x{height}:fps={render.fps},setsar=1[v{index}]"
        )
    count = len(stills)
    joined = "".join(f"[v{index}]" for index in range(count))
    colour = clip.style.palette[1].replace("#", "0x")
    chains.append(f"{joined}concat=n={count}:v=1,drawbox=0:0:iw:ih:{colour}:t=4[cut]")
    chains.append(f"[{count}]format=yuv420p[badge];[cut][badge]overlay=0:H-h,format=yuv420p[out]")
    inputs += ["-i", str(work / "badge.ppm"), *_sound(clip)]
    sound = ["-map", f"{count + 1}:a", "-af", "apad", "-c:a", "aac", "-b:a", "48k"] if job.audio else []
    return [
        *inputs, "-filter_complex", ";".join(chains), "-map", "[out]", *sound, "-t", str(job.duration_s),
        "-c:v", "libx264", "-preset", "ultrafast", "-crf", "28", "-threads", "1", "-movflags", "+faststart",
        str(target),
    ]  # fmt: skip


def _camera(turn: int, frames: int) -> str:
    """A zoompan expression; the turn chooses among four moves."""
    progress = f"on/{max(frames - 1, 1)}"
    moves = (
        ("1+0.18*" + progress, "(iw-iw/zoom)/2", "(ih-ih/zoom)/2"),
        ("1.18", f"(iw-iw/zoom)*{progress}", "(ih-ih/zoom)/2"),
        ("1.2-0.18*" + progress, "(iw-iw/zoom)/2", "(ih-ih/zoom)*0.7"),
        ("1.18", f"(iw-iw/zoom)*(1-{progress})", f"(ih-ih/zoom)*{progress}"),
    )
    zoom, x, y = moves[turn % len(moves)]
    return f"zoompan=z='{zoom}':x='{x}':y='{y}'"


def _sound(clip: Clip) -> list[str]:
    if not clip.job.audio:
        return []
    if clip.job.reference_audios:
        return ["-i", str(clip.inputs / clip.job.reference_audios[0])]
    tone = 110 + 20 * (sum(clip.signature.encode()) % 12)
    expression = f"0.05*sin(2*PI*{tone}*t)+0.03*sin(3*PI*{tone}*t)"
    return ["-f", "lavfi", "-i", f"aevalsrc={expression}:s=24000:d={clip.job.duration_s}"]
