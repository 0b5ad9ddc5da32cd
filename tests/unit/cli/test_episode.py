"""The document of the demonstration, whole and shortened, and what `kill -9` of a stack reaches."""

import asyncio
import os
import sys

from cli.demo.descent import descent, still_there
from cli.demo.episode import SLIP, read_document, shortened
from services.runs.domain.reading.production import read_plan
from tests.support.waiting import eventually_async


def test_the_document_and_every_shorter_one_are_sound() -> None:
    """RUN-3: what the demonstration hands in is accepted as it stands, with a line for each shot."""
    whole = read_document()
    for document in (whole, *(shortened(whole, shots) for shots in (5, 8, 19))):
        plan, faults = read_plan(document)
        assert (plan is not None, faults) == (True, [])
        shots = document["inputs"]["shots"]
        [film] = [node for node in document["nodes"] if node["id"] == "film"]
        assert len(film["input"]["subtitles"]) == len(shots)
        assert [shot["seconds"] for shot in shots if shot["id"] == SLIP] == [6]
    assert len(whole["inputs"]["shots"]) == 19
    assert len(shortened(whole, 5)["inputs"]["shots"]) == 5


async def test_everything_below_a_process_is_found_and_its_end_is_seen() -> None:
    """VER-6: a kill of a stack reaches what its processes started."""
    child = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'])"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", child, stdin=asyncio.subprocess.PIPE)

    async def both() -> bool:
        return len(await descent(process.pid)) == 2

    await eventually_async(both)
    found = await descent(process.pid)
    assert os.getpid() not in found
    assert await still_there(found) == found
    await process.communicate(b"\n")
    assert await still_there(found) == set()
