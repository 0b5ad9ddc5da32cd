"""A film in the Ark dialect: a video task whose content is clips, voices and lines, in roles that are the studio's own.

| item | role | beside its URL or text |
|---|---|---|
| `video_url` | `clip` | the order of the items is that of the film |
| `audio_url` | `narration` | `clip`: the number of its clip from 0; absent, it lies over the whole film |
| `text` | `subtitle` | `clip`, or `start_s` and `end_s` in seconds of the film |

Ark itself knows none of them and refuses such a task, as every model of the studio does that joins no clips.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from services.studio.domain.accounts import Model
from services.studio.domain.jobs import Film, Line, VideoJob, Voice
from services.studio.domain.refusals import Reason, Refusal


def read(body: Mapping[str, Any], model: Model) -> VideoJob:
    """Reads the task; how long the film will be is known when its clips are here. Raises Refusal."""
    content = body.get("content")
    if not isinstance(content, list) or not content:
        raise Refusal(Reason.PARAMETER_MISSING, "The required parameter `content` is missing.", "content")
    clips: list[str] = []
    voices: list[Voice] = []
    lines: list[Line] = []
    for index, item in enumerate(content):
        role = item.get("role") if isinstance(item, Mapping) else None
        if role == "clip":
            clips.append(_url(item, "video_url", index))
        elif role == "narration":
            voices.append(Voice(_url(item, "audio_url", index), _clip_of(item, index)))
        elif role == "subtitle":
            lines.append(_line(item, index))
        else:
            raise _invalid(index, f"is none of clip, narration and subtitle, which model {model.id} takes")
    film = Film(tuple(clips), tuple(voices), tuple(lines))
    _check(film, model)
    return VideoJob(
        prompt="\n".join(line.text for line in lines),
        duration_s=0,
        resolution="",
        ratio="",
        seed=0,
        safety_identifier=str(body.get("safety_identifier") or ""),
        service_tier=str(body.get("service_tier") or "default"),
        expires_after_s=int(body.get("execution_expires_after") or 172_800),
        film=film,
    )


def _check(film: Film, model: Model) -> None:
    if not film.clips:
        raise Refusal(Reason.PARAMETER_MISSING, f"Model {model.id} joins clips: none is in `content`.", "content")
    for noun, count, most in (
        ("clip", len(film.clips), model.clips),
        ("narration", len(film.voices), model.narrations),
        ("subtitle", len(film.lines), len(film.lines) if model.subtitles else 0),
    ):
        if count > most:
            raise _refusal(f"model {model.id} takes at most {most} of role {noun}")
    places = [voice.clip for voice in film.voices]
    if len(places) > len(set(places)) or (None in places and len(places) > 1):
        raise _refusal("a clip has one narration, and a film that has one as a whole has no other")
    for place in (*places, *(line.clip for line in film.lines)):
        if place is not None and place >= len(film.clips):
            raise _refusal(f"there is no clip {place}: {len(film.clips)} were given, from 0")


def _url(item: Mapping[str, Any], kind: str, index: int) -> str:
    holder = item.get(kind)
    url = holder.get("url") if isinstance(holder, Mapping) else None
    if item.get("type") != kind or not isinstance(url, str) or not url:
        raise _invalid(index, f"needs the type {kind} and its url")
    return url


def _clip_of(item: Mapping[str, Any], index: int) -> int | None:
    clip = item.get("clip")
    if clip is not None and (not isinstance(clip, int) or isinstance(clip, bool) or clip < 0):
        raise _invalid(index, "has a `clip` that is no number of a clip, from 0")
    return clip


def _line(item: Mapping[str, Any], index: int) -> Line:
    text, clip = item.get("text"), _clip_of(item, index)
    if not isinstance(text, str) or not text.strip():
        raise _invalid(index, "has no text")
    if clip is not None:
        return Line(text, clip)
    start, end = _seconds(item.get("start_s")), _seconds(item.get("end_s"))
    if not 0 <= start < end:
        raise _invalid(index, "needs a `clip`, or `start_s` and after it `end_s`, in seconds of the film")
    return Line(text, start_s=start, end_s=end)


def _seconds(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else -1.0


def _invalid(index: int, reason: str) -> Refusal:
    return Refusal(Reason.PARAMETER_INVALID, f"The parameter `content[{index}]` {reason}.", "content")


def _refusal(reason: str) -> Refusal:
    text = f"The parameter `content` specified in the request is not valid: {reason}."
    return Refusal(Reason.PARAMETER_INVALID, text, "content")
