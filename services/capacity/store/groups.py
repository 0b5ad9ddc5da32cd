"""A group of reservations and releases as the columns that `decide_group` is asked with, and what its row answers.

Most members of a group ask for the same: such a wish travels once, and each reservation is an id beside its number.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from services.capacity.domain.leases import Lease, Request, lease_of
from services.capacity.domain.ledger import Refusal
from services.capacity.domain.pacing import FREEZE_MAX
from services.capacity.store import verdicts
from services.capacity.store.verdicts import Known, Return

Ask = Request | Return
Answer = Lease | Refusal | Known | None
GONE = ("g_kind", "g_channel", "g_supply", "g_channel_epoch", "g_supply_epoch", "g_tokens", "g_reserved", "g_expires")


class Group:
    """One group; `columns` go out, `answers` reads the row that comes back."""

    def __init__(self, asks: Sequence[Ask]) -> None:
        self._size = len(asks)
        self._requests: list[Request] = []
        self._returns: list[Return] = []
        self._places: tuple[list[int], list[int]] = ([], [])  # of requests and returns among the asks
        for place, ask in enumerate(asks):
            if isinstance(ask, Return):
                self._returns.append(ask)
                self._places[1].append(place)
            else:
                self._requests.append(ask)
                self._places[0].append(place)

    def columns(self) -> tuple[object, ...]:
        """The arguments of `decide_group`."""
        wishes: dict[tuple[Any, ...], int] = {}
        numbers = [wishes.setdefault(_wish(request), len(wishes) + 1) for request in self._requests]
        told = [list(column) for column in zip(*wishes, strict=True)] or [[] for _ in range(12)]
        views = [figure for view in zip(*told[6:], strict=True) for figure in view]
        returns = self._returns
        return (
            *told[:6],
            views,
            [request.lease_id for request in self._requests],
            numbers,
            [back.lease_id for back in returns],
            [back.holder for back in returns],
            [back.used_tokens for back in returns],
            [back.feedback.outcome.value for back in returns],
            [min(back.feedback.retry_after, FREEZE_MAX) for back in returns],
            any(back.settles for back in returns),
        )

    def answers(self, row: Mapping[str, Any]) -> list[Answer | Exception]:
        """What each member is answered, in the order asked."""
        answers: list[Answer | Exception] = [None] * self._size
        places, back_places = self._places
        if row["admitted"]:
            at = row["at"]
            for place, request in zip(places, self._requests, strict=True):
                answers[place] = lease_of(request, at)
        else:
            for verdict in row["others"]:
                nth = verdict["nth"] - 1
                answers[places[nth]] = verdicts.reserved(self._requests[nth], verdict, verdict["at"])
        if row["gone"]:
            for nth, *was in zip(row["gone"], *(row[name] for name in GONE), strict=True):
                answers[back_places[nth - 1]] = _ended(self._returns[nth - 1], was, row["at"])
        return answers


def _wish(request: Request) -> tuple[str, str, str, str, int, timedelta, int, int, int | None, int, int, int | None]:
    """What a reservation asks for, without its id: a column each."""
    channel, supply = request.channel_health, request.supply_health
    return (
        request.holder,
        request.kind,
        request.channel_id,
        request.supply_id,
        request.tokens,
        request.ttl,
        channel.epoch,
        channel.revision,
        channel.limit,
        supply.epoch,
        supply.revision,
        supply.limit,
    )


def _ended(back: Return, was: Sequence[Any], at: Any) -> Lease:
    """The lease given back; `was` are the columns of GONE."""
    kind, channel, supply, channel_epoch, supply_epoch, tokens, reserved, expires = was
    return Lease(
        back.lease_id,
        back.holder,
        kind,
        channel,
        supply,
        channel_epoch,
        supply_epoch,
        tokens,
        reserved,
        expires,
        at,
        True,
        back.used_tokens,
    )
