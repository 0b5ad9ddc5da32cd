"""Explicit-state search of the ledger: every order of reservation, release, renewal, lapse, and change of health.

One Channel with two slots and a window of three, two Supplies with two slots and one. Time moves in steps of thirty
seconds; a lease lives for two of them, and so does a window. Each node is checked against laws counted by hand.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from services.capacity.domain import holding, ledger
from services.capacity.domain.leases import Lease, Request, lease_of
from services.capacity.domain.ledger import Gate, Refusal
from services.capacity.domain.levels import HealthLimit, Kind, Level, Subject
from services.capacity.domain.pacing import UNPACED, Pace
from tests.support.worlds import START

UNIT = timedelta(seconds=30)
TTL = timedelta(seconds=60)
MINUTE = timedelta(seconds=60)
CHANNEL = Subject(Kind.CHANNEL, "a")
SUPPLIES = (Subject(Kind.SUPPLY, "a/x"), Subject(Kind.SUPPLY, "a/y"))
SLOTS = {CHANNEL: 2, SUPPLIES[0]: 2, SUPPLIES[1]: 1}
REQUESTS = 3
WAITS = {Gate.REQUESTS, Gate.FROZEN}  # what time alone opens
# What health says of "a/x", one revision after another: healthy, open, probing.
HEALTH = (HealthLimit(1, 1, None), HealthLimit(2, 2, 0), HealthLimit(2, 3, 1))
UNTOUCHED = HealthLimit(1, 1, None)
# What the provider of "a/x" has taught: nothing, one slot and a half, not to ask for a while.
PACES = (UNPACED, Pace(limit=1500), Pace(frozen_until=START + 2 * UNIT))


@dataclass(frozen=True, slots=True)
class Rules:
    """The parts that a mutant replaces."""

    decide: Callable[[Sequence[Level], Sequence[Lease], Request, datetime], Refusal | None] = ledger.decide
    renewed: Callable[[Lease | None, str, timedelta, datetime], Lease | None] = holding.renewed
    released: Callable[[Lease | None, str, int | None, datetime], Lease | None] = holding.released


@dataclass(frozen=True, slots=True)
class Node:
    """Leases, the newest state of health that capacity has heard, what was learned of pace, and the time."""

    leases: tuple[Lease, ...] = ()
    health: int = 0
    now: datetime = START
    pace: int = 0

    def key(self) -> object:
        """What decides the future."""
        present = HEALTH[self.health].epoch
        until = PACES[self.pace].frozen_until
        thaws = max(until - self.now, timedelta(0)) if until else None
        return self.health, self.pace, thaws, tuple(
            sorted(
                (
                    lease.supply_id, lease.supply_epoch == present, lease.ended_at is None and lease.live(self.now),
                    max(lease.expires_at - self.now, timedelta(0)), min(self.now - lease.reserved_at, MINUTE),
                )
                for lease in self.leases
            )
        )  # fmt: skip

    def levels(self) -> list[Level]:
        """The declared levels, with what was heard of their health."""
        return [
            Level(CHANNEL, "", SLOTS[CHANNEL], REQUESTS, health=UNTOUCHED),
            Level(SUPPLIES[0], "a", SLOTS[SUPPLIES[0]], health=HEALTH[self.health], pace=PACES[self.pace]),
            Level(SUPPLIES[1], "a", SLOTS[SUPPLIES[1]], health=UNTOUCHED),
        ]


class Breach(Exception):
    """A law does not hold."""


def explore(rules: Rules | None = None, leases: int = 3) -> tuple[int, str]:
    """How many nodes were seen with at most that many leases, and the law that broke first (empty if none did)."""
    rules = rules or Rules()
    first = Node()
    seen = {first.key()}
    queue = deque([first])
    while queue:
        node = queue.popleft()
        try:
            for after in _actions(node, rules, leases):
                if after.key() not in seen:
                    seen.add(after.key())
                    queue.append(after)
        except Breach as breach:
            return len(seen), str(breach)
    return len(seen), ""


def _actions(node: Node, rules: Rules, most: int) -> Iterator[Node]:
    later = node.now + UNIT
    yield replace(node, now=later, leases=tuple(lease for lease in node.leases if _matters(lease, later)))
    if node.health + 1 < len(HEALTH):
        yield replace(node, health=node.health + 1)
    if node.pace + 1 < len(PACES):
        yield replace(node, pace=node.pace + 1)
    for index, lease in enumerate(node.leases):
        yield _with(node, index, _held(node, lease, rules.renewed(lease, "h", TTL, node.now), "renewed"))
        yield _with(node, index, _held(node, lease, rules.released(lease, "h", None, node.now), "released"))
        if rules.renewed(lease, "other", TTL, node.now) or rules.released(lease, "other", None, node.now):
            raise Breach("another's lease was renewed or released")
    for supply in SUPPLIES:
        shown = HEALTH[node.health] if supply is SUPPLIES[0] else UNTOUCHED
        request = _request(node, supply, shown)
        outcome = rules.decide(_of(node, supply), node.leases, request, node.now)
        _check(node, supply, request, outcome, rules)
        if outcome is None and len(node.leases) < most:
            yield replace(node, leases=(*node.leases, lease_of(request, node.now)))
    if node.health:
        request = _request(node, SUPPLIES[0], HEALTH[node.health - 1])
        outcome = rules.decide(_of(node, SUPPLIES[0]), node.leases, request, node.now)
        if outcome is None or not _shut(node, SUPPLIES[0], HEALTH[node.health - 1]):
            raise Breach("an old view of health was admitted")


def _matters(lease: Lease, now: datetime) -> bool:
    """Leases stay in sight for one step longer than they count, so that one who still counts them is noticed."""
    return lease.live(now - UNIT) or lease.reserved_at > now - MINUTE - UNIT


def _request(node: Node, supply: Subject, shown: HealthLimit) -> Request:
    name = f"{node.now.timestamp()} {len(node.leases)} {supply.id}"
    return Request(name, "h", "video", "a", supply.id, UNTOUCHED, shown, 0, TTL)


def _of(node: Node, supply: Subject) -> list[Level]:
    return [level for level in node.levels() if level.subject in (CHANNEL, supply)]


def _with(node: Node, index: int, lease: Lease) -> Node:
    return replace(node, leases=(*node.leases[:index], lease, *node.leases[index + 1 :]))


def _held(node: Node, before: Lease, after: Lease | None, verb: str) -> Lease:
    if after is None:
        if before.ended_at is None and before.expires_at > node.now:
            raise Breach(f"a lease that is held could not be {verb}")
        return before
    if before.ended_at is not None or before.expires_at <= node.now:
        raise Breach(f"a lease that had ended was {verb}")
    return after


def _shut(node: Node, supply: Subject, shown: HealthLimit, at: datetime | None = None) -> set[tuple[Subject, Gate]]:
    """The gates that are shut for a reservation at that time, counted by hand."""
    now = at or node.now
    shut = set()
    for subject in (CHANNEL, supply):
        mine = [lease for lease in node.leases if subject in (CHANNEL, Subject(Kind.SUPPLY, lease.supply_id))]
        live = [lease for lease in mine if lease.ended_at is None and lease.expires_at > now]
        if len(live) >= SLOTS[subject]:
            shut.add((subject, Gate.CONCURRENCY))
        if subject is CHANNEL and sum(lease.reserved_at > now - MINUTE for lease in mine) >= REQUESTS:
            shut.add((subject, Gate.REQUESTS))
        if subject is SUPPLIES[0]:
            pace = PACES[node.pace]
            if pace.limit is not None and len(live) * 1000 + 1000 > pace.limit:
                shut.add((subject, Gate.ADAPTIVE))
            if pace.frozen_until is not None and now < pace.frozen_until:
                shut.add((subject, Gate.FROZEN))
            known = HEALTH[node.health]
            if shown.revision < known.revision:
                shut.add((subject, Gate.STALE_HEALTH))
            if known.limit is not None and sum(lease.supply_epoch == known.epoch for lease in live) >= known.limit:
                shut.add((subject, Gate.HEALTH))
    return shut


def _check(node: Node, supply: Subject, request: Request, outcome: Refusal | None, rules: Rules) -> None:
    shut = _shut(node, supply, request.supply_health)
    if outcome is None:
        if shut:
            raise Breach("admitted through a shut gate")
        return
    if not shut:
        raise Breach("refused with every gate open")
    if (outcome.subject, outcome.gate) not in shut:
        raise Breach("the gate that was named is open")
    waits = {gate for _, gate in shut} & WAITS
    if (outcome.retry_at is not None) != bool(waits):
        raise Breach("a wait hint where time opens nothing, or none where it does")
    if outcome.retry_at is not None:
        if {gate for _, gate in _shut(node, supply, request.supply_health, outcome.retry_at)} & WAITS:
            raise Breach("the wait hint is too early to be of use")
        at = node.now
        while at < outcome.retry_at:
            if not _shut(node, supply, request.supply_health, at):
                raise Breach("a retry could have succeeded before the hint")
            at += UNIT
