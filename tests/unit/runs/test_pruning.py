"""Histories that are no longer kept."""

from datetime import timedelta

import pytest

from libs.faults.fault import Fault
from libs.host.placement import PlacementError
from services.runs.app.prune_history import prune_history
from services.runs.app.stream_events import list_events, stream_events
from services.runs.domain.run import RunState
from services.runs.settings import Settings
from tests.unit.runs.test_gates import FRAME, GATE, house, production

KEEP = timedelta(days=30)


async def test_a_cursor_before_what_is_kept_is_told_the_earliest() -> None:
    """SSE-5: history_pruned with `earliest`, listed and streamed; from there on the rest comes; a cursor ahead is a
    malformed one."""
    home = house()
    run = await home.carry(await home.produce(production(FRAME)))
    assert run.state is RunState.SUCCEEDED
    assert await prune_history(home.runs, home.world, KEEP) == 0
    home.clock.advance(31 * 86_400)
    assert await prune_history(home.runs, home.world, KEEP) == 1
    last = run.last_sequence
    for after in (0, last - 2):
        with pytest.raises(Fault) as caught:
            await list_events(home.runs, "a", run.id, after, 100)
        assert (caught.value.code, caught.value.metadata["earliest"]) == ("history_pruned", str(last))
        with pytest.raises(Fault) as caught:
            await anext(stream_events(home.hub, "a", run.id, after))
        assert caught.value.code == "history_pruned"
    (event,) = await list_events(home.runs, "a", run.id, last - 1, 100)
    assert event.kind == "run_completed"
    assert [[event]] == [batch async for batch in stream_events(home.hub, "a", run.id, last - 1)]
    assert await list_events(home.runs, "a", run.id, last, 100) == []
    with pytest.raises(Fault) as caught:
        await list_events(home.runs, "a", run.id, last + 1, 100)
    assert caught.value.code == "malformed_request"
    assert await home.now(run) == run


async def test_what_is_not_over_keeps_its_history() -> None:
    """SSE-5, EVENT-3: however old, a Run that waits for a person is rebuilt from its events."""
    home = house()
    run = await home.carry(await home.produce(production(FRAME, GATE)))
    home.clock.advance(300 * 86_400)
    assert await prune_history(home.runs, home.world, KEEP) == 0
    await home.rebuilds(run)


@pytest.mark.parametrize("text", ["0", "-1", "nan", "soon", "1e9"])
def test_a_time_that_is_none_is_refused_at_start(text: str) -> None:
    """SSE-5: nothing is pruned by a slip of the pen; without the setting nothing is pruned at all."""
    env = {"POINTSMAN_DATABASE_URL": "memory:"}
    assert Settings.from_env(env).keep_events_days is None
    assert Settings.from_env({**env, "POINTSMAN_KEEP_EVENTS_DAYS": "0.5"}).keep_events_days == 0.5
    with pytest.raises(PlacementError, match="POINTSMAN_KEEP_EVENTS_DAYS"):
        Settings.from_env({**env, "POINTSMAN_KEEP_EVENTS_DAYS": text})
