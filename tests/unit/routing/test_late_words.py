"""What providers say after we had given up: booked, told, never dropped."""

import itertools
from decimal import Decimal

from libs.faults.fault import Fault
from libs.kernel.money import Money
from services.routing.app.hear_late import hear_late
from services.routing.app.resolve_attempt import Resolution, resolve_attempt
from services.routing.domain.attempts import fault
from services.routing.domain.late import WATCHED_S
from services.routing.domain.story import tell
from services.routing.domain.task import Attempt, AttemptState, TaskState
from services.routing.ports import Polled, Reconciled, TaskQuery
from services.routing.ports.alerts import AlertQuery
from tests.unit.routing.dispatch_fakes import FILM, Stage, stage
from tests.unit.routing.dispatch_offers import catalog, supply

UNKNOWN = Reconciled("unknown", "", "not listed yet")
SILENT = Fault.of("connect_failed", "no answer")
CNY = "CNY"


def cny(amount: str) -> Money:
    """That much."""
    return Money(CNY, Decimal(amount))


async def given_up(**more: object) -> Stage:
    """A Task whose first job was given up after a minute of silence; its second one has begun."""
    play = stage(offers=catalog(supply("a/clip"), supply("b/clip")), poll_give_up_s=60.0, **more)
    play.provider.polls = [SILENT] * 40
    await play.submit()
    await play.work()
    while (await play.task()).attempts[0].state is not AttemptState.FAILED:
        await play.pass_time(5)
    play.provider.polls = [Polled("running")] * 10_000
    await play.pass_time(5)
    return play


async def unresolved() -> Stage:
    """A Task that ended because nobody could find out whether it was taken."""
    play = stage(offers=catalog(policy={"uncertain_deadline_s": 30.0}))
    play.provider.answers["a/clip"] = [None]
    play.provider.verdicts = [UNKNOWN] * 30
    await play.submit()
    await play.pass_time(40)
    assert (await play.task()).attempts[0].state is AttemptState.UNRESOLVED
    play.provider.verdicts = []
    return play


async def first(play: Stage) -> Attempt:
    """The first Attempt."""
    return (await play.task()).attempts[0]


async def told(play: Stage) -> list[str]:
    """The words of the anomalies, newest first."""
    page, _ = await play.desk.store.alerts(AlertQuery(kind="cost_anomaly"))
    return [alert.message for alert in page]


async def test_a_success_after_we_gave_the_job_up_is_booked_and_told():
    """COST-12, ATT-6: the Task goes on with its second Attempt, and neither is changed; the real cost takes the place
    of the quote, what was delivered is kept with the Attempt, and the anomaly tells the newer words."""
    play = await given_up()
    before = await play.task()
    assert before.attempts[0].failure is not None
    assert before.attempts[0].failure.code == "provider_timeout"
    assert before.attempts[0].cost == cny("1")
    play.provider.cost = cny("0.75")
    play.provider.polls = [Polled("succeeded", play.provider.delivered())]
    play.clock.advance(60)
    await hear_late(play.desk)
    after = await play.task()
    attempt = after.attempts[0]
    assert (attempt.state, after.state) == (AttemptState.FAILED, before.state)
    assert attempt.late is not None
    assert (attempt.late.outcome, attempt.late.artifacts, attempt.late.booked_before) == (
        "succeeded",
        (FILM,),
        cny("1"),
    )
    assert (attempt.cost, after.spent) == (cny("0.75"), cny("0.75"))
    assert attempt.late_look_at is None
    (words,) = await told(play)
    assert "succeeded after we had ended it; 0.75 CNY is booked" in words
    assert any("was heard of late: it succeeded" in line for line in tell(after, ()))
    play.provider.polls = []
    await play.pass_time(90)
    done = await play.task()
    assert done.state is TaskState.SUCCEEDED
    assert done.spent == cny("1.50")
    assert len(play.health.outcomes) == 2
    assert play.health.outcomes[attempt.id] is not None  # one outcome: its first failure (HLT-13)


async def test_a_late_word_waits_for_the_worker_that_holds_the_task():
    """COST-12, ATT-7: nothing is written past a claim in force; the next look books it."""
    play = await given_up()
    play.clock.advance(60)
    held = await play.desk.store.claim_one("t1", "w", play.clock.now(), play.desk.in_s(15))
    assert held is not None
    play.provider.polls = [Polled("succeeded", play.provider.delivered())] * 2
    await hear_late(play.desk)
    assert (await first(play)).late is None
    play.clock.advance(121)
    await hear_late(play.desk)
    assert (await first(play)).late is not None


async def test_an_unresolved_submission_is_found_later():
    """ATT-6, COST-12: the records have it after all: the quote is booked at once and it leaves the list of those in
    doubt; its end corrects the cost. The Task stays failed."""
    play = await unresolved()
    query = TaskQuery(uncertain=True)
    assert len((await play.desk.store.find(query))[0]) == 1
    play.provider.polls = [Polled("running")]
    play.clock.advance(60)
    await hear_late(play.desk)
    found = await play.task()
    assert (found.attempts[0].resolution, found.attempts[0].provider_task_id) == (
        "accepted", f"job-{found.attempts[0].client_token}",
    )  # fmt: skip
    assert (found.attempts[0].cost, found.spent) == (cny("1"), cny("1"))
    assert (await play.desk.store.find(query))[0] == ()
    assert "after all; 1 CNY is booked until its end" in (await told(play))[0]
    play.provider.cost = cny("2")
    play.clock.advance(3600)
    await hear_late(play.desk)
    ended = await play.task()
    assert (ended.state, ended.attempts[0].state) == (TaskState.FAILED, AttemptState.UNRESOLVED)
    assert (ended.attempts[0].cost, ended.spent) == (cny("2"), cny("2"))
    assert len(play.provider.ledger) == 1


async def test_an_unresolved_submission_turns_out_never_taken():
    """ATT-6: the records say so later: nothing was charged, and no further alert is raised."""
    play = await unresolved()
    play.provider.ledger.clear()
    before = await told(play)
    play.clock.advance(60)
    await hear_late(play.desk)
    attempt = await first(play)
    assert attempt.late is not None
    assert (attempt.late.outcome, attempt.resolution, attempt.cost) == ("not_accepted", "not_accepted", cny("0"))
    assert await told(play) == before
    play.clock.advance(WATCHED_S)
    play.provider.calls.clear()
    await hear_late(play.desk)
    assert play.provider.calls == []


async def test_a_late_failure_costs_what_failures_cost():
    """COST-12: nothing, where the Supply does not charge for them: the quote that was booked is taken back."""
    play = await given_up()
    play.provider.polls = [Polled("failed", failure=fault("provider_error", "x", "supply", "supply", True))]
    play.clock.advance(60)
    await hear_late(play.desk)
    attempt = await first(play)
    assert attempt.late is not None
    assert (attempt.late.outcome, attempt.cost, (await play.task()).spent) == ("failed", cny("0"), cny("0"))
    assert attempt.failure is not None
    assert attempt.failure.code == "provider_timeout"


async def test_an_operators_word_ends_the_watch_or_helps_it():
    """ATT-6: not accepted, and nobody asks again; accepted under an id, and its end is still learned."""
    play = await unresolved()
    attempt = await first(play)
    await resolve_attempt(play.desk, Resolution(attempt.id, "accepted", "job-x"))
    play.provider.cost = cny("3")
    play.clock.advance(60)
    await hear_late(play.desk)
    assert (await first(play)).cost == cny("3")
    other = await unresolved()
    attempt = await first(other)
    await resolve_attempt(other.desk, Resolution(attempt.id, "not_accepted"))
    assert (await first(other)).late_look_at is None


async def test_what_was_not_stopped_at_its_deadline_is_heard_later():
    """ATT-6, COST-12: the quote was booked because it could not be stopped; what it really cost is learned."""
    play = stage()
    play.provider.polls = [Polled("running")] * 1000
    play.provider.stops = [(False, None)]
    await play.submit(deadline=play.desk.in_s(20))
    await play.pass_time(25)
    assert (await play.task()).state is TaskState.FAILED
    assert (await first(play)).cost == cny("1")
    play.provider.polls, play.provider.cost = [], cny("0.4")
    play.clock.advance(60)
    await hear_late(play.desk)
    after = await play.task()
    assert (after.attempts[0].cost, after.spent) == (cny("0.4"), cny("0.4"))


async def test_the_watch_grows_slower_and_ends():
    """ATT-6: asked at growing intervals of at most an hour for a day, whatever goes wrong in between."""
    play = await unresolved()
    play.provider.verdicts = [UNKNOWN, SILENT] * 100
    ended = (await first(play)).finished_at
    assert ended is not None
    asked = []
    while (look := (await first(play)).late_look_at) is not None:
        asked.append((look - ended).total_seconds())
        play.clock.advance((look - play.clock.now()).total_seconds())
        await hear_late(play.desk)
    pauses = [later - sooner for sooner, later in itertools.pairwise(asked)]
    assert asked[0] == 60
    assert pauses == sorted(pauses)
    assert max(pauses) == 3600
    assert WATCHED_S - 3600 < asked[-1] <= WATCHED_S
    assert (await first(play)).late is None
