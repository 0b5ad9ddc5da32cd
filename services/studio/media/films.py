"""Films with ffmpeg: clips joined in their order, voices laid over them, lines as a track of their own.

Laws of this file:
- a film is as long as its clips together, whatever lies over them;
- pictures of clips that were made alike are copied, not drawn again; one other clip among them and all are drawn;
- a file is read as what its bytes are, and leads to no other: no playlist is followed.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from services.studio.domain.jobs import Film, Line
from services.studio.media.clips import WORK_PREFIX
from services.studio.media.ffmpeg import RenderError, executable, finished, run

SOUND = "aresample=48000,aformat=sample_fmts=fltp:channel_layouts=stereo"
SILENCE = "anullsrc=r=48000:cl=stereo"
BESIDE_A_VOICE = 0.35  # how loud a clip's own sound stays while somebody speaks
FASTEST = 1.5  # a voice that is longer than its clip speaks up to so much faster, and is cut where its clip ends
MOST_FPS = 60.0
FORMATS = "mov,matroska,mp3,wav,aac,ogg,flac"
SAFE = ("-protocol_whitelist", "file", "-format_whitelist", FORMATS)
ALIKE = "h264"  # the codec whose clips are copied where their parameter sets agree
_INPUT = re.compile(r"^Input #(\d+), ", re.MULTILINE)
_DURATION = re.compile(r"^  Duration: (\d+):(\d\d):(\d\d\.\d+)", re.MULTILINE)
_STREAM = re.compile(r"^  Stream #\d+:\d+[^:]*: (Video|Audio): ([^\n]*)", re.MULTILINE)
_SIDES = re.compile(r"\b(\d{2,5})x(\d{2,5})\b")
_FPS = re.compile(r"\b([\d.]+) fps")
_BIT_RATE = re.compile(r"\b\d+ kb/s, ")


@dataclass(frozen=True, slots=True)
class Part:
    """What a file holds. `pictures` are ffmpeg's words for the video stream without its bit rate, "" for none."""

    path: Path
    duration_s: float
    pictures: str = ""
    width: int = 0
    height: int = 0
    fps: float = 0.0
    sound: bool = False


async def survey(paths: Sequence[Path]) -> list[Part]:
    """Looks at all files in one go. Raises RenderError for one that cannot be read or has no length."""
    if not paths:
        return []
    inputs = [word for path in paths for word in (*SAFE, "-i", str(path))]
    process = await asyncio.create_subprocess_exec(
        executable(), "-nostdin", "-hide_banner", "-loglevel", "info", *inputs,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    _, told = await finished(process)  # it ends with an error: there is nothing that it was to make
    found = _INPUT.split(told.decode(errors="replace"))[1:]
    if len(found) != 2 * len(paths):
        raise RenderError(f"file {len(found) // 2 + 1} of {len(paths)} cannot be read")
    return [_part(path, text, number) for number, (path, text) in enumerate(zip(paths, found[1::2], strict=True), 1)]


def _part(path: Path, told: str, number: int) -> Part:
    length = _DURATION.search(told)
    if length is None:
        raise RenderError(f"file {number} does not say how long it is")
    hours, minutes, seconds = length.groups()
    streams = dict(reversed(_STREAM.findall(told)))
    pictures = _BIT_RATE.sub("", streams.get("Video", ""))
    sides, fps = _SIDES.search(pictures), _FPS.search(pictures)
    return Part(
        path=path,
        duration_s=int(hours) * 3600 + int(minutes) * 60 + float(seconds),
        pictures=pictures if sides else "",
        width=int(sides[1]) if sides else 0,
        height=int(sides[2]) if sides else 0,
        fps=min(float(fps[1]), MOST_FPS) if fps else 24.0,
        sound="Audio" in streams,
    )


def frame(parts: Sequence[Part]) -> tuple[int, int]:
    """The size of the film: that of most of its clips, of the first one among equals; both sides even."""
    (width, height), _ = Counter((part.width, part.height) for part in parts).most_common(1)[0]
    return max(2, width // 2 * 2), max(2, height // 2 * 2)


def length(parts: Sequence[Part]) -> float:
    """Seconds of the clips together."""
    return round(sum(part.duration_s for part in parts), 3)


async def make(film: Film, inputs: Path, target: Path) -> None:
    """Makes the film of the kept files that it names, under `inputs`. Raises RenderError."""
    clips = await survey([inputs / name for name in film.clips])
    voices = await survey([inputs / voice.source for voice in film.voices])
    with tempfile.TemporaryDirectory(prefix=WORK_PREFIX, dir=inputs.parent) as folder:
        work = Path(folder)
        copied = await asyncio.to_thread(alike, clips)
        part = work / "film.mp4"
        await run(_arguments(film, clips, voices, work, copied, part))
        part.replace(target)


def alike(parts: Sequence[Part]) -> bool:
    """Whether the pictures of all clips may stand in one stream as they are."""
    first = parts[0].pictures
    if not first.startswith(f"{ALIKE} ") or any(part.pictures != first for part in parts):
        return False
    sets = {_parameter_sets(part.path) for part in parts}
    return len(sets) == 1 and b"" not in sets


def _parameter_sets(path: Path) -> bytes:
    """What a decoder of H.264 is set up with (`avcC`): equal words of ffmpeg may still mean another set-up."""
    content = path.read_bytes()
    at = content.find(b"avcC")
    return content[at : at - 4 + int.from_bytes(content[at - 4 : at], "big")] if at >= 4 else b""


def _arguments(film: Film, clips: list[Part], voices: list[Part], work: Path, copied: bool, target: Path) -> list[str]:
    inputs = [word for part in (*clips, *voices) for word in (*SAFE, "-i", str(part.path))]
    count = len(clips) + len(voices)
    chains = _sound(film, clips, voices)
    if copied:
        pictures = ["-map", f"{count}:v", "-c:v", "copy"]
        inputs += ["-protocol_whitelist", "file", "-f", "concat", "-safe", "0", "-i", str(_listed(clips, work))]
        count += 1
    else:
        chains += _pictures(clips)
        pictures = ["-map", "[pictures]", "-c:v", "libx264", "-preset", "ultrafast", "-crf", "26", "-threads", "2"]
    lines: list[str] = []
    if film.lines:
        inputs += ["-f", "srt", "-i", str(_written(film.lines, clips, work))]
        lines = ["-map", f"{count}:s", "-c:s", "mov_text"]
    return [
        *inputs, "-filter_complex", ";".join(chains), *pictures, "-map", "[sound]", "-c:a", "aac", "-b:a", "96k",
        *lines, "-map_metadata", "-1", "-t", f"{length(clips):.3f}", "-movflags", "+faststart", str(target),
    ]  # fmt: skip


def _listed(clips: list[Part], work: Path) -> Path:
    """The list of clips for the joiner: each begins with its picture, not with the lead of its sound, and lasts as long
    as it says, so that all after it begin in time."""
    path = work / "clips.txt"
    entries = (f"file '{part.path.resolve()}'\ninpoint 0\nduration {part.duration_s:.3f}\n" for part in clips)
    path.write_text("ffconcat version 1.0\n" + "".join(entries), encoding="utf-8")
    return path


def _pictures(clips: list[Part]) -> list[str]:
    """Every clip brought to one size and rate, at its own length, with black where its shape is another."""
    width, height = frame(clips)
    fps = max(part.fps for part in clips)
    chains = [
        f"[{number}:v:0]scale={width}:{height}:force_original_aspect_ratio=decrease,pad={width}:{height}:-1:-1,"
        f"setsar=1,fps={fps:g},format=yuv420p,tpad=stop_mode=clone:stop_duration={part.duration_s:.3f},"
        f"trim=0:{part.duration_s:.3f},setpts=PTS-STARTPTS[v{number}]"
        for number, part in enumerate(clips)
    ]
    joined = "".join(f"[v{number}]" for number in range(len(clips)))
    return [*chains, f"{joined}concat=n={len(clips)}:v=1[pictures]"]


def _sound(film: Film, clips: list[Part], voices: list[Part]) -> list[str]:
    """The clips' own sound in a row, softer where somebody speaks."""
    spoken = {voice.clip: len(clips) + number for number, voice in enumerate(film.voices)}
    lengths = {voice.clip: part.duration_s for voice, part in zip(film.voices, voices, strict=True)}
    chains = []
    for number, part in enumerate(clips):
        own = f"[{number}:a:0]{SOUND},apad" if part.sound else SILENCE
        name = f"a{number}"
        if number in spoken:
            chains += _over(f"{own},{_cut(part.duration_s)}", spoken[number], lengths[number], part.duration_s, name)
        else:
            chains.append(f"{own},{_cut(part.duration_s)}[{name}]")
    joined = "".join(f"[a{number}]" for number in range(len(clips)))
    row = f"{joined}concat=n={len(clips)}:v=0:a=1"
    if None in spoken:
        return [*chains, *_over(row, spoken[None], 0.0, length(clips), "sound")]
    return [*chains, f"{row}[sound]"]


def _over(bed: str, voice: int, spoken_s: float, room_s: float, name: str) -> list[str]:
    """Chains that lay the voice of that input over a bed of `room_s` seconds."""
    pace = min(spoken_s / room_s, FASTEST)
    hurried = f"atempo={pace:.4f}," if pace > 1 else ""
    return [
        f"{bed},volume={BESIDE_A_VOICE}[{name}bed]",
        f"[{voice}:a:0]{hurried}{SOUND},apad,{_cut(room_s)}[{name}voice]",
        f"[{name}bed][{name}voice]amix=inputs=2:duration=first:normalize=0[{name}]",
    ]


def _cut(seconds: float) -> str:
    return f"atrim=0:{seconds:.3f},asetpts=N/SR/TB"


def _written(lines: Sequence[Line], clips: list[Part], work: Path) -> Path:
    path = work / "lines.srt"
    path.write_text(lines_of(lines, clips), encoding="utf-8")
    return path


def lines_of(lines: Sequence[Line], clips: Sequence[Part]) -> str:
    """The lines as SubRip, in the order of their times, none beyond the end."""
    starts = [0.0]
    for part in clips:
        starts.append(starts[-1] + part.duration_s)
    spans = [
        (line.start_s, line.end_s, line.text)
        if line.clip is None
        else (starts[line.clip], starts[line.clip + 1], line.text)
        for line in lines
    ]
    return "\n".join(
        f"{number}\n{_stamp(start)} --> {_stamp(min(end, starts[-1]))}\n{_words(text)}\n"
        for number, (start, end, text) in enumerate(sorted(spans), 1)
    )


def _words(text: str) -> str:
    """Without what SubRip would take for its own: empty lines, arrows, marks of style."""
    rows = (row.strip().replace("-->", "→").replace("<", "‹").replace("{", "(") for row in text.splitlines())
    return "\n".join(row for row in rows if row)


def _stamp(seconds: float) -> str:
    thousandths = round(seconds * 1000)
    hours, rest = divmod(thousandths, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    return f"{hours:02}:{minutes:02}:{rest // 1000:02},{rest % 1000:03}"
