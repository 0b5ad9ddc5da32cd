"""One whole episode on the real stack, in small: what `pointsman demo` plays and checks with nineteen shots."""

from pathlib import Path

from cli.demo.episode import read_document, shortened
from cli.demo.production import produce

SHOTS = 5


async def test_an_episode_survives_a_dead_provider_a_failed_check_and_kill_9(tmp_path: Path) -> None:
    """RUN-6, RUN-8, GATE-3, COST-9, COST-10, STEER-2, DLQ-1, EVENT-1, EVENT-3, VER-6, VER-7: from an approved
    storyboard to a film that plays. A provider dies, the style changes, everything is killed with -9 while shots are at
    the providers, one shot fails its check and is redriven, and the budget reaches its soft limit; nothing is sent or
    paid twice, nothing stays held, and budget, run, history and the providers' ledger tell one sum."""
    facts, reel = await produce(tmp_path, shortened(read_document(), SHOTS))
    assert [f"{fact.claim}: {fact.seen}" for fact in facts.broken] == []
    assert len(reel.shots) == SHOTS
    assert reel.film.is_file()
    assert abs(reel.seconds - 4.0 * SHOTS) < 1.0
