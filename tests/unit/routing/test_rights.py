"""What operators are told of circuits that open, first of all of an account that may not be used any more."""

import pytest

from libs.faults.fault import Fault
from services.routing.app.follow_health import HealthFollower
from services.routing.domain.decision import HealthView
from services.routing.domain.refusals import HealthCause
from services.routing.ports.alerts import AlertQuery
from tests.unit.routing.dispatch_fakes import Stage, stage


def opened(play: Stage, channel: str, reason: str, epoch: int = 1) -> None:
    """Open a Channel's circuit, for a reason that health's history tells; "" = it tells none."""
    play.health.channels[channel] = HealthView("circuit_open", epoch=epoch, revision=epoch, limit=0)
    if reason:
        play.health.causes["channel", channel, epoch] = HealthCause(epoch, "opened", reason, "a9", play.desk.now())


async def told(play: Stage) -> list[tuple[str, str, int]]:
    """Kind, subject and count of each alert, as operators read them."""
    page, _ = await play.desk.store.alerts(AlertQuery())
    return [(alert.kind, alert.subject, alert.count) for alert in page]


async def test_an_account_without_rights_is_told_at_once() -> None:
    """SLO-2: a Channel that opens because its key is refused is an alert before the breaker's, and one for as long as
    it is open; a Channel that opens for another reason, or for one that nobody knows, is none."""
    play = stage()
    follower = HealthFollower(play.desk)
    opened(play, "a", "key_invalid")
    opened(play, "b", "balance_exhausted")
    opened(play, "c", "")
    await follower.tick()
    first, *others = await told(play)
    assert first == ("rights_expired", "a", 1)
    assert sorted(others) == [("breaker_opened", name, 1) for name in "abc"]
    opened(play, "a", "account_forbidden", epoch=2)
    await follower.tick()
    assert (await told(play))[0] == ("rights_expired", "a", 2)
    page, _ = await play.desk.store.alerts(AlertQuery(kind="rights_expired"))
    assert [(alert.severity, alert.cause, alert.link) for alert in page] == [
        ("critical", "account_forbidden", "/v1/operator/health"),
    ]  # fmt: skip


async def test_what_health_cannot_say_now_is_asked_again() -> None:
    """SLO-2: a Channel whose cause cannot be read is not taken as told."""
    play = stage()
    follower = HealthFollower(play.desk)
    opened(play, "a", "key_invalid")

    async def away(effect: str) -> None:
        if effect == "health.cause_of":
            raise Fault.of("governance_backend_down", "away")

    effect, play.health.effect = play.health.effect, away
    with pytest.raises(Fault, match="away"):
        await follower.tick()
    assert await told(play) == []
    play.health.effect = effect
    await follower.tick()
    assert (await told(play))[0] == ("rights_expired", "a", 1)


async def test_openings_are_one_alert() -> None:
    """HLT-10, OPS-6: while it is open, the alert of a circuit counts its openings, each once however many processes
    look and however often; it says why the last one was."""
    play = stage()
    for epoch, why in ((1, "provider_error"), (2, "provider_timeout")):
        play.health.supplies["a/clip"] = HealthView("circuit_open", epoch=epoch, revision=2 * epoch, limit=0)
        cause = HealthCause(epoch, "opened", why, "t1", play.desk.now())
        play.health.causes["supply", "a/clip", 2 * epoch] = cause
        for follower in (HealthFollower(play.desk), HealthFollower(play.desk)):
            await follower.tick()
            await follower.tick()
    (alert,) = (await play.desk.store.alerts(AlertQuery()))[0]
    assert (alert.subject, alert.cause, alert.count) == ("a/clip", "epoch 2", 2)
    assert alert.message == "The circuit of supply a/clip is open until told otherwise: provider_timeout."
