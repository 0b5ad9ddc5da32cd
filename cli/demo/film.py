"""The film and its shots as files that a person can watch, and what they measure."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.commands.run import download_all
from cli.demo.facts import Facts
from cli.demo.pictures import contact_sheet, frame_of
from libs.materials.examining import Examined, examine
from libs.materials.probing import Unreadable

JOINT_S = 0.1
"""How much longer or shorter a film may be for each of its joints: shots end on whole frames."""


@dataclass(frozen=True, slots=True)
class Reel:
    """What was made: the film and its shots in order; `seconds` is what can be watched."""

    film: Path
    shots: tuple[Path, ...]
    seconds: float


async def save_reel(api: Any, run: Mapping[str, Any], makers: Mapping[str, str], folder: Path, facts: Facts) -> Reel:
    """Download the film, its shots and the contact sheet; note whether the film plays."""
    nodes = {node["id"]: node for node in run["nodes"]}
    shots = []
    for node in run["nodes"]:
        if node["parent"] == "motion":
            [shot] = await download_all(api, node["artifacts"], folder / "shots", node["id"].partition("/")[2])
            shots.append((shot, makers.get(node["id"], "").partition("/")[0]))
    film = folder / f"{run['production']}.mp4"
    await api.download(f"/v1/artifacts/{nodes['film']['artifacts'][0]['sha256']}", film)
    await _contact_sheet(shots, folder / "contact-sheet.png", facts)
    seconds = await _watch(film, [path for path, _ in shots], facts)
    return Reel(film, tuple(path for path, _ in shots), seconds)


async def _watch(film: Path, shots: Sequence[Path], facts: Facts) -> float:
    """Every frame of the film is decoded; its length in seconds, 0 where it does not play."""
    try:
        seen = await examine(film, decoding=True)
        lengths = [(await examine(path)).measures.duration_s for path in shots]
    except Unreadable as error:
        facts.check("the film plays from its first frame to its last", False, str(error))
        return 0.0
    length, wanted = seen.measures.duration_s, sum(lengths)
    facts.check("the film plays from its first frame to its last", True, _measures(seen))
    near = abs(length - wanted) <= JOINT_S * len(shots)
    facts.check("it is as long as its shots together", near, f"{length:.2f} s", f"{wanted:.2f} s")
    held = (bool(seen.streams.video), bool(seen.streams.audio), seen.streams.subtitles)
    told = f"{seen.streams.video}, {seen.streams.audio}, subtitles {seen.streams.subtitles}"
    facts.check("it holds pictures, sound and lines to read", held == (True, True, 1), told, "one of each")
    return length


def _measures(seen: Examined) -> str:
    measures = seen.measures
    return f"{measures.width}x{measures.height}, {measures.duration_s:.2f} s, {measures.bytes / 1e6:.1f} MB"


async def _contact_sheet(shots: Sequence[tuple[Path, str]], target: Path, facts: Facts) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        named = [(path, f"{path.stem.partition('-')[0]} {who}") for path, who in shots]
        frames = [(await frame_of(path, Path(scratch) / f"{path.stem}.png"), who) for path, who in named]
        whole = [(path, who) for path, who in frames if path is not None]
        facts.equal("shots that decode", len(whole), len(shots))
        if whole:
            contact_sheet(whole, target)
