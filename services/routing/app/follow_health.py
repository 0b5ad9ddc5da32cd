"""Follows the breaker: passes what it allows on to capacity, wakes who waited for it, tells operators of an opening."""

from collections.abc import Mapping
from dataclasses import replace

from libs.faults.fault import Fault
from services.routing.app.desk import Desk, alerts_of
from services.routing.domain.availability import clock_time
from services.routing.domain.decision import AlertDraft, HealthView
from services.routing.ports.alerts import Alert

OPEN = "circuit_open"
LINK = "/v1/operator/health"
WOKEN_BY_A_RECOVERY = 16
WITHOUT_RIGHTS = frozenset({"key_invalid", "account_forbidden"})
"""Why a Channel opens whose account may not be used any more; an empty balance is no question of rights."""

Views = Mapping[str, HealthView]


class HealthFollower:
    """Remembers the last snapshot. Each process follows on its own; what it tells is idempotent."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._seen: tuple[Views, Views] = ({}, {})

    async def tick(self) -> None:
        """Look once. What capacity or the store did not take is tried again with the next look."""
        channels, supplies = await self._desk.health.snapshot()
        new_channels, new_supplies = _changed(channels, self._seen[0]), _changed(supplies, self._seen[1])
        if not new_channels and not new_supplies:
            return
        await self._desk.capacity.apply_health(new_channels, new_supplies)
        for sort, views in (("channel", new_channels), ("supply", new_supplies)):
            await self._tell(sort, views)
        self._seen = (channels, supplies)
        if any(view.state != OPEN for view in (*new_channels.values(), *new_supplies.values())):
            self._desk.usher.freed(WOKEN_BY_A_RECOVERY)

    async def _tell(self, sort: str, views: Views) -> None:
        for name, view in views.items():
            if view.state == OPEN:
                why = await self._why(sort, name, view)
                alerts = self._of_rights(name, why) if sort == "channel" and why in WITHOUT_RIGHTS else ()
                await self._desk.store.raise_alerts((*alerts, self._of_opening(sort, name, view, why)))

    async def _why(self, sort: str, name: str, view: HealthView) -> str:
        """The reason of the state, in health's words; empty where its history does not tell it any more."""
        try:
            return (await self._desk.health.cause_of(sort, name, view.revision)).reason
        except Fault as fault:
            if fault.code != "not_found":
                raise
            return ""

    def _of_opening(self, sort: str, name: str, view: HealthView, why: str) -> Alert:
        """One while it is open, with the number of openings: an epoch is one, whoever sees it and however often."""
        until = clock_time(view.cooldown_until) if view.cooldown_until else "told otherwise"
        message = f"The circuit of {sort} {name} is open until {until}{f': {why}' if why else ''}."
        draft = AlertDraft("breaker_opened", "high", name, message, cause=f"epoch {view.epoch}")
        (alert,) = alerts_of(self._desk, (draft,), LINK, suffix=sort)
        return replace(alert, once_a_cause=True)

    def _of_rights(self, name: str, why: str) -> tuple[Alert, ...]:
        """Once for as long as it is open: each probe of a key that is no longer good is the same matter."""
        message = f"The account of channel {name} may not be used any more: its provider answers {why}."
        return alerts_of(self._desk, (AlertDraft("rights_expired", "critical", name, message, cause=why),), LINK)


def _changed(now: Views, before: Views) -> dict[str, HealthView]:
    """Those whose revision, state or limit differs."""
    return {name: view for name, view in now.items() if _face(view) != _face(before.get(name))}


def _face(view: HealthView | None) -> tuple[object, ...]:
    return () if view is None else (view.epoch, view.revision, view.state, view.limit)
