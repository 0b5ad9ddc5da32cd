"""Video counted in tokens: width x height x frames a second x seconds / 1024, to the next whole token."""

from decimal import ROUND_CEILING, Decimal

from services.cost_quote.domain.facts import Asked
from services.cost_quote.domain.rules import VideoTokens

PIXELS_PER_TOKEN = Decimal(1024)


def tokens_of(video: VideoTokens, asked: Asked, longest_s: Decimal | None) -> tuple[Decimal, bool] | str:
    """(tokens, whether that is the most there can be), or what is missing. `longest_s` stands for a length that the
    request leaves to the provider."""
    seconds, open_ = asked.decimal("duration_s"), False
    if asked.undecided("duration_s"):
        seconds, open_ = longest_s, True
    if seconds is None or seconds < 0:
        return "needs duration_s, a number from 0 up"
    frame = _frame(video, asked)
    if isinstance(frame, str):
        return frame
    pixels, several = frame
    read, unsaid = _input_seconds(video, asked)
    if read is None:
        return f"needs {video.input_video}: the seconds of {video.input_given}"
    tokens = pixels * video.fps * (seconds + read) / PIXELS_PER_TOKEN
    floor = _floor(video, asked) if asked.given(video.input_given) else Decimal(0)
    return max(tokens.to_integral_value(ROUND_CEILING), floor), open_ or several or unsaid


def _frame(video: VideoTokens, asked: Asked) -> tuple[int, bool] | str:
    """(pixels of a frame, whether others are possible): the largest where the provider chooses."""
    resolutions = _named(asked, "resolution", video.default_resolution, list(video.frames))
    sizes: list[int] = []
    for resolution in resolutions:
        table = video.frames.get(resolution, {})
        sizes += [table[ratio] for ratio in _named(asked, "ratio", video.default_ratio, list(table)) if ratio in table]
    if not sizes:
        said = ", ".join(f"{name}={asked.fact(name)}" for name in ("resolution", "ratio"))
        return f"knows no frame of {said}"
    return max(sizes), len(sizes) > 1


def _named(asked: Asked, name: str, usual: str, every: list[str]) -> list[str]:
    """The one that is asked for; all where the provider decides."""
    if asked.undecided(name):
        return every
    value = asked.fact(name)
    if value in (None, ""):
        return [usual] if usual else every
    return [str(value)]


def _input_seconds(video: VideoTokens, asked: Asked) -> tuple[Decimal | None, bool]:
    """(seconds of input video, whether that is the most there can be); None where nobody can tell."""
    if not video.input_video or not asked.given(video.input_given):
        return Decimal(0), False
    said = asked.decimal(video.input_video)
    if said is not None and said >= 0:
        return said, False
    return video.input_most, True


def _floor(video: VideoTokens, asked: Asked) -> Decimal:
    """The least number of tokens with input video; the highest where the resolution is left to the provider."""
    if not video.floor:
        return Decimal(0)
    names = _named(asked, "resolution", video.default_resolution, list(video.floor))
    return max(video.floor.get(name, video.floor.get("*", Decimal(0))) for name in names)
