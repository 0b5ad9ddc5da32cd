"""`pointsman drill` as its user sees it: a process that starts a stack of its own, harms it and reports."""

import asyncio
import json
import sys
from pathlib import Path


async def test_a_reviewer_who_is_absent(tmp_path: Path) -> None:
    """SLO-2, HUMAN-1: the deadline of a gate is executed, the deputy decides, nothing is paid twice or left lying; the
    report is JSON and the exit code 0."""
    verb = ("--data", str(tmp_path), "drill", "reviewer-absent", "--json")
    drill = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "cli", *verb, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    told, complaints = await drill.communicate()
    assert drill.returncode == 0, complaints.decode()
    report = json.loads(told)
    measures = {name: report[name] for name in ("kept", "data_lost", "double_charges", "orphan_nodes")}
    assert measures == {"kept": True, "data_lost": [], "double_charges": 0, "orphan_nodes": []}
    assert report["noticed_s"] > 0
    assert report["recovery_s"] is not None
