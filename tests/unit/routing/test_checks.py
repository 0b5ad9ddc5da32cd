"""The running checks: what stands where it should not becomes a durable alert, once, and nothing else does."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from libs.faults.fault import Fault
from services.routing.app.acknowledge_alert import acknowledge_alert
from services.routing.app.check_histories import CheckHistories
from services.routing.app.check_leases import CheckLeases
from services.routing.app.check_standing import CheckStanding
from services.routing.app.keep_leases import keep_leases
from services.routing.app.tell_findings import MOST
from services.routing.domain.task import AttemptState, TaskState
from services.routing.ports import Polled
from services.routing.ports.alerts import Alert, AlertQuery
from tests.unit.routing.dispatch_fakes import Stage, stage


async def told(play: Stage, kind: str = "") -> list[Alert]:
    """Alerts of a kind."""
    page, _ = await play.desk.store.alerts(AlertQuery(kind=kind))
    return list(page)


def stand(play: Stage, task_id: str = "t1", claimed_until: Any = None, **changes: Any) -> None:
    """Put a Task where no write of ours would: past every rule."""
    row = play.desk.store._rows[task_id]  # type: ignore[attr-defined]  # the memory store's own rows
    row.task, row.claimed_until = replace(row.task, **changes), claimed_until


async def followed(play: Stage) -> None:
    """A Task whose job runs and will not end."""
    play.provider.polls = [Polled("running")] * 10_000
    await play.submit()
    await play.work()


async def test_a_life_without_mishap_is_told_by_nobody():
    """ATT-7, OPS-6: submitted, lost and found again, polled, ended: a check at every step finds nothing."""
    play = stage()
    check = CheckStanding(play.desk)
    play.provider.answers["a/clip"] = [None]
    await play.submit()
    await check()
    for _ in range(40):
        await play.pass_time(1)
        await check()
    assert (await play.task()).state is TaskState.SUCCEEDED
    assert await told(play) == []


async def test_an_orphan_is_told_once_with_cause_and_link():
    """ATT-7, OPS-6: a Task that no rule carries on is an alert that names it, deduplicated while it stands; seen by an
    operator and still there, it is told again."""
    play = stage()
    await play.submit()
    stand(play, next_action_at=None)
    checks = CheckStanding(play.desk), CheckStanding(play.desk)  # two processes
    for _ in range(3):
        for check in checks:
            await check()
    (alert,) = await told(play)
    assert (alert.kind, alert.severity, alert.subject) == ("stuck_state", "critical", "t1")
    assert (alert.cause, alert.link, alert.count) == ("no_rule: task t1", "/v1/tasks/t1", 2)
    assert "queued, no live attempt without due" in alert.message
    await acknowledge_alert(play.desk, alert.id)
    await checks[0]()
    assert len(await told(play)) == 1
    play.clock.advance(601)
    await checks[0]()
    assert [item.acknowledged_at is None for item in await told(play)] == [True, False]


async def test_an_attempt_that_outlives_its_task_is_told():
    """ATT-7, OPS-6: the subject is the Attempt."""
    play = stage()
    await followed(play)
    stand(play, state=TaskState.CANCELLED, next_action_at=None)
    await CheckStanding(play.desk)()
    (alert,) = await told(play, "invariant_violated")
    assert alert.subject == (await play.task()).attempts[0].id
    assert alert.cause == "outlives: task t1"


async def test_a_claim_that_nobody_takes_over_is_told():
    """ATT-7, OPS-6: within a lease and 15 s a dead worker's Task is taken over; if not, it is stuck."""
    play = stage()
    await followed(play)
    due = play.clock.now()
    stand(play, next_action_at=due, claimed_until=due + timedelta(seconds=15))
    check = CheckStanding(play.desk)
    play.clock.advance(30)
    await check()
    assert await told(play) == []
    play.clock.advance(1)
    await check()
    assert await told(play) == []
    play.clock.advance(15)
    await check()
    (alert,) = await told(play)
    assert (alert.kind, alert.severity) == ("stuck_state", "high")
    assert alert.cause == "lapsed: task t1"


async def test_what_an_outage_made_late_is_not_told_by_who_comes_back():
    """ATT-7, OPS-6: after an hour without any of us every claim has lapsed, also at the first check of a process that
    takes it over a moment later; only what it has seen late for 15 s is told."""
    play = stage()
    await followed(play)
    due = play.clock.now()
    stand(play, next_action_at=due, claimed_until=due + timedelta(seconds=15))
    play.clock.advance(3600)
    check = CheckStanding(play.desk)
    await check()
    await play.work()
    for _ in range(4):
        await play.pass_time(15)
        await check()
    assert await told(play) == []


async def test_a_line_that_does_not_move_is_told_and_a_long_one_is_not():
    """ATT-7, ATT-9: due for hours behind others is no fault; the first of its line, unclaimed for long, is stuck."""
    play = stage()
    check = CheckStanding(play.desk)
    for number in range(8):
        await play.submit(f"t{number}")
    play.clock.advance(3600)
    for number in range(7):
        await check()
        stand(play, f"t{number}", next_action_at=play.clock.now() + timedelta(minutes=9), epoch=1)  # it was looked at
        play.clock.advance(20)
    assert await told(play) == []
    await check()
    play.clock.advance(29)
    await check()
    assert await told(play) == []
    play.clock.advance(1)
    await check()
    (alert,) = await told(play)
    assert (alert.kind, alert.subject, alert.cause) == ("stuck_state", "t7", "not_taken: task t7")


async def test_a_debt_that_health_does_not_take_is_told():
    """HLT-13, OPS-6: an outcome that is owed for minutes."""
    play = stage()
    play.health.unheard_of = {"a/clip"}
    await play.submit()
    await play.pass_time(5)
    attempt = (await play.task()).attempts[0]
    assert attempt.report_pending
    check = CheckStanding(play.desk)
    await check()
    assert await told(play) == []
    play.clock.advance(301)
    await check()
    play.clock.advance(15)
    await check()
    (alert,) = await told(play, "stuck_state")
    assert (alert.subject, alert.cause) == (attempt.id, "not_told: task t1")


async def test_many_findings_are_told_a_few_at_a_time():
    """OPS-6: no flood, and in the end nobody is left out."""
    play = stage()
    for number in range(MOST + 5):
        await play.submit(f"t{number}")
        stand(play, f"t{number}", next_action_at=None)
    check = CheckStanding(play.desk)
    await check()
    assert len(await told(play)) == MOST
    await check()
    assert {alert.subject for alert in await told(play)} == {f"t{number}" for number in range(MOST + 5)}


async def test_a_slot_that_is_held_for_nobody_is_told():
    """CAP-2, OPS-6: renewed though its Attempt has ended, or without any: a leak after one time to live."""
    play = stage()
    await followed(play)
    (lease,) = play.capacity.live()
    started = play.clock.now()
    check = CheckLeases(play.desk)

    async def pass_minutes(minutes: int) -> None:
        for _ in range(minutes):
            play.clock.advance(59)
            await play.capacity.renew([lease, "nobody"])
            play.capacity.taken |= dict.fromkeys([lease, "nobody"], started)
            await keep_leases(play.desk)
            await check()

    await pass_minutes(5)
    assert await told(play, "ledger_mismatch") == []
    attempt = (await play.task()).attempts[0]
    over = replace(attempt, state=AttemptState.FAILED, finished_at=play.clock.now())
    stand(play, state=TaskState.FAILED, next_action_at=None, attempts=(over,))
    play.capacity.leases["nobody"] = play.capacity.leases[lease]
    await pass_minutes(1)
    assert [alert.subject for alert in await told(play, "ledger_mismatch")] == ["nobody"]
    await pass_minutes(1)
    assert {alert.subject for alert in await told(play, "ledger_mismatch")} == {"nobody", lease}
    links = {alert.subject: alert.link for alert in await told(play, "ledger_mismatch")}
    assert links == {lease: "/v1/tasks/t1", "nobody": "/v1/operator/capacity"}


async def test_a_history_that_does_not_fold_is_told():
    """HLT-12, OPS-6: what health's own check has found becomes a durable alert here."""
    play = stage()
    check = CheckHistories(play.desk)
    await check()
    assert await told(play) == []
    play.health.broken["a/clip"] = "event 3 follows 1"
    await check()
    await check()
    (alert,) = await told(play)
    assert (alert.kind, alert.severity, alert.subject) == ("invariant_violated", "critical", "a/clip")
    assert "event 3 follows 1" in alert.message
    assert alert.link == "/v1/operator/health"


async def test_a_peer_that_is_away_leaves_the_other_checks_alone():
    """OPS-6: while health is away its histories are not judged; standing Tasks are."""
    play = stage()
    play.health.away = Fault.of("peer_unavailable", "gone")
    await play.submit()
    stand(play, next_action_at=None)
    await CheckStanding(play.desk)()
    assert len(await told(play)) == 1
