"""`pointsman drill`, every name of it; the quickest one is played by tests/e2e/test_drill_command.py always."""

from pathlib import Path

import pytest

from cli.drills.acts import DRILLS
from cli.drills.play import play

QUICKEST = "reviewer-absent"


@pytest.mark.parametrize("name", sorted(DRILLS.keys() - {QUICKEST}))
async def test_a_drill_keeps_its_promise(name: str, tmp_path: Path) -> None:
    """SLO-2: recovery, lost data, double charges and orphan nodes are as promised."""
    report = await play(name, tmp_path, lambda _: None)
    assert report.facts.broken == []
    assert report.kept
