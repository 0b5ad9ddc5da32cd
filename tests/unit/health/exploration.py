"""Explicit-state search of the breaker: every order of dispatch, end, crash, late or repeated report, time, operator.

The world around the breaker is small and hostile: a dispatcher that takes every slot it is allowed, Attempts whose
lease lapses while they work on, reports that come late, twice or never. Each action takes one unit of time; a wait
jumps to the end of the cooldown, so only the order of things matters and the states are few enough to see them all.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from services.health.domain.breaker import Breaker, Stepped, declared, step
from services.health.domain.events import REMARKS, Health, applied
from services.health.domain.ladder import allowed_slots
from services.health.domain.observations import (
    Command,
    CooldownOver,
    Declared,
    Failure,
    Family,
    Observation,
    Success,
)
from services.health.domain.states import Signal, State
from services.health.domain.subjects import Kind
from services.health.domain.thresholds import Thresholds

UNIT = timedelta(milliseconds=1)
COOLDOWN_S = 1000.0
THRESHOLDS = Thresholds.of(
    cooldown_s=COOLDOWN_S, consecutive_failures=3, degraded_failures=2, degraded_successes=2, failure_rate_min=10**6
)
LADDER = (State.PROBING, State.RECOVERING)
QUARTERS = {2: 1, 3: 2, 4: 3}


@dataclass(frozen=True, slots=True)
class Op:
    """An Attempt: `leased` while its slot counts; `good` once it has ended; `told` once its outcome was reported."""

    epoch: int
    leased: bool = True
    good: bool | None = None
    ended_at: datetime | None = None
    told: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """One state of the little world."""

    breaker: Breaker
    ops: tuple[Op, ...]
    now: datetime

    def key(self) -> object:
        """What decides the future: two nodes with one key behave alike."""
        health, tally = self.breaker.health, self.breaker.tally
        closed = health.state in (State.HEALTHY, State.DEGRADED)
        streaks = (tally.failures, tally.family_failures, min(tally.successes, 2)) if closed else ()
        return health.state, health.recovery_successes, streaks, tuple(sorted(map(self._op_key, self.ops)))

    def _op_key(self, op: Op) -> tuple[object, ...]:
        current = op.epoch == self.breaker.health.epoch
        if op.good is None:
            return 0, current, op.leased, op.told
        if op.good:
            return 1, current, False, op.told
        assert op.ended_at is not None
        return 2, op.ended_at >= self.breaker.health.since, False, op.told


@dataclass(frozen=True, slots=True)
class Rules:
    """The parts that a mutant replaces."""

    step: Callable[[Breaker, Observation, datetime], Stepped] = step
    allowed: Callable[[State, int, int], int | None] = allowed_slots
    once: bool = True


@dataclass(frozen=True, slots=True)
class Report:
    """What the search saw. `breach` tells the invariant that broke, `path` the shortest way to it."""

    nodes: int
    breach: str = ""
    path: tuple[str, ...] = ()


class Breach(Exception):
    """An invariant does not hold."""


def explore(slots: int, in_flight: int, rules: Rules | None = None) -> Report:
    """Breadth first, so that a breach comes with the shortest path. Ends with the liveness check."""
    rules = rules or Rules()
    start = datetime(2026, 1, 1, tzinfo=UTC)
    breaker, _ = declared(Kind.SUPPLY, Declared(slots, THRESHOLDS), False, start)
    first = Node(breaker, (), start)
    seen: dict[object, tuple[object, str]] = {first.key(): (None, "")}
    edges: dict[object, set[object]] = {}
    healthy: set[object] = set()
    queue = deque([first])
    while queue:
        node = queue.popleft()
        key = node.key()
        if node.breaker.health.state is State.HEALTHY:
            healthy.add(key)
        try:
            for label, after in _actions(node, in_flight, rules):
                edges.setdefault(after.key(), set()).add(key)
                if after.key() not in seen:
                    seen[after.key()] = (key, label)
                    queue.append(after)
        except Breach as breach:
            return Report(len(seen), str(breach), _path(seen, key))
    stuck = seen.keys() - _backwards(healthy, edges)
    if stuck:
        return Report(len(seen), "nothing leads back to healthy", _path(seen, next(iter(stuck))))
    return Report(len(seen))


def _path(seen: dict[object, tuple[object, str]], key: object) -> tuple[str, ...]:
    labels: list[str] = []
    while True:
        previous, label = seen[key]
        if previous is None:
            return tuple(reversed(labels))
        labels.append(label)
        key = previous


def _backwards(goal: set[object], edges: dict[object, set[object]]) -> set[object]:
    reached, todo = set(goal), list(goal)
    while todo:
        for before in edges.get(todo.pop(), ()):
            if before not in reached:
                reached.add(before)
                todo.append(before)
    return reached


def _actions(node: Node, in_flight: int, rules: Rules) -> Iterator[tuple[str, Node]]:
    """Every action possible now, checked."""
    now = node.now + UNIT
    node = replace(node, now=now)
    health = node.breaker.health
    if len(node.ops) < in_flight and _admits(node, rules):
        dispatched = replace(node, ops=(*node.ops, Op(health.epoch)))
        _check_slots(dispatched)
        yield "dispatch", dispatched
    for index, op in enumerate(node.ops):
        yield from _op_actions(node, index, op, rules)
    yield "tick", _stepped(node, CooldownOver(), now, rules)
    if health.state is State.CIRCUIT_OPEN:
        assert health.cooldown_until is not None
        late = max(now, health.cooldown_until)
        yield "wait", _stepped(replace(node, now=late), CooldownOver(), late, rules)
    for signal in (Signal.SWITCHED_OFF, Signal.SWITCHED_ON):
        yield signal.name, _stepped(node, Command(signal, "operator"), now, rules)


def _op_actions(node: Node, index: int, op: Op, rules: Rules) -> Iterator[tuple[str, Node]]:
    rest = (*node.ops[:index], *node.ops[index + 1 :])
    name = f"op {index} (epoch {op.epoch})"
    yield f"{name} vanishes", replace(node, ops=rest)
    if op.good is None:
        if op.leased:
            yield f"{name} loses its lease", replace(node, ops=(*rest, replace(op, leased=False)))
        for good in (True, False):
            ended = replace(op, leased=False, good=good, ended_at=node.now)
            yield f"{name} ends {'well' if good else 'badly'}", replace(node, ops=(*rest, ended))
        return
    told = () if op.told else (replace(op, told=True),)
    base = replace(node, ops=(*rest, *told))
    if op.told and rules.once:
        yield f"{name} is told again", base
        return
    assert op.ended_at is not None
    observation: Observation
    if op.good:
        observation = Success(name, op.epoch, op.ended_at)
    else:
        observation = Failure(name, op.ended_at, "provider_error", Family.SERVER)
    after = _stepped(base, observation, node.now, rules)
    if op.told and after.breaker.health != node.breaker.health:
        raise Breach("an outcome that was told again changed something")
    yield f"{name} is told", after


def _admits(node: Node, rules: Rules) -> bool:
    """What capacity would say (CAP-4, CAP-4a)."""
    breaker = node.breaker
    allowed = rules.allowed(breaker.health.state, breaker.health.recovery_successes, breaker.configured)
    leased = [op for op in node.ops if op.leased]
    if len(leased) >= breaker.configured:
        return False
    return allowed is None or sum(op.epoch == breaker.health.epoch for op in leased) < allowed


def _check_slots(node: Node) -> None:
    health, slots = node.breaker.health, node.breaker.configured
    present = sum(op.leased and op.epoch == health.epoch for op in node.ops)
    if health.state is State.PROBING and present > 1:
        raise Breach("two probes at once")
    if health.state is State.RECOVERING:
        limit = 1 if slots == 1 else min(slots - 1, -(-slots * QUARTERS[health.recovery_successes] // 4))
        if present > limit:
            raise Breach("more Attempts than the rung of the ladder admits")
    if health.state in (State.CIRCUIT_OPEN, State.DISABLED):
        raise Breach("dispatched where nothing may be")


def _stepped(node: Node, observation: Observation, now: datetime, rules: Rules) -> Node:
    after, events = rules.step(node.breaker, observation, now)
    _check_history(node.breaker, after, events)
    match observation:
        case Success():
            _check_success(node.breaker, after, observation, events)
        case Failure():
            _check_failure(node.breaker, after, observation, events)
        case CooldownOver():
            _check_clock(node.breaker, after, now)
        case Command():
            if observation.signal is Signal.SWITCHED_OFF and after.health.state is not State.DISABLED:
                raise Breach("an operator's word was ignored")
    return replace(node, breaker=after)


def _check_history(before: Breaker, after: Breaker, events: tuple) -> None:
    health: Health | None = before.health
    try:
        for event in events:
            health = applied(health, event)
    except ValueError as error:
        raise Breach(f"the history has a hole: {error}") from error
    if health != after.health:
        raise Breach("folding the events does not give the state")
    for event in events:
        opens = event.after is State.CIRCUIT_OPEN or event.kind in ("enabled", "disabled")
        rises = event.kind not in REMARKS and opens
        if event.epoch != before.health.epoch + int(rises):
            raise Breach("the epoch rises where a circuit opens, and nowhere else")


def _check_success(before: Breaker, after: Breaker, success: Success, events: tuple) -> None:
    old, new = before.health, after.health
    if old.state in (*LADDER, State.CIRCUIT_OPEN, State.DISABLED):
        counts = old.state in LADDER and success.epoch == old.epoch
        if not counts and (new != old or [event.kind for event in events] != ["stale_ignored"]):
            raise Breach("a success from before the trip moved something, or left no trace")
        if counts:
            rung = old.recovery_successes + 1
            wanted = State.PROBING if rung == 1 else State.RECOVERING if rung < 5 else State.HEALTHY
            if (new.state, new.recovery_successes) != (wanted, rung):
                raise Breach("the ladder was not climbed by one rung")
    elif new.state not in (State.HEALTHY, State.DEGRADED):
        raise Breach("a success closed nothing and opened something")


def _check_failure(before: Breaker, after: Breaker, failure: Failure, events: tuple) -> None:
    old, new = before.health, after.health
    if old.state in (State.CIRCUIT_OPEN, State.DISABLED) or failure.at < old.since:
        if new != old or [event.kind for event in events] != ["stale_ignored"]:
            raise Breach("a failure from before the present state counted, or left no trace")
    elif old.state in LADDER:
        until = failure.at + timedelta(seconds=COOLDOWN_S)
        if (new.state, new.recovery_successes, new.cooldown_until) != (State.CIRCUIT_OPEN, 0, until):
            raise Breach("a failure on the ladder must open at once with the whole cooldown")
    elif before.tally.family_failures + 1 >= THRESHOLDS.consecutive_failures:
        if new.state is not State.CIRCUIT_OPEN:
            raise Breach("the opening threshold was passed")
    elif new.state is State.CIRCUIT_OPEN:
        raise Breach("opened below the threshold")


def _check_clock(before: Breaker, after: Breaker, now: datetime) -> None:
    until = before.health.cooldown_until
    due = before.health.state is State.CIRCUIT_OPEN and until is not None and until <= now
    if due and after.health.state is not State.PROBING:
        raise Breach("the cooldown is over and nobody may probe")
    if not due and after.health != before.health:
        raise Breach("time moved what only an outcome may move, or moved it too early")
