"""What health tells to the page of metrics."""

from collections.abc import Iterable

from libs.telemetry import metrics, names
from services.health.domain.events import Event
from services.health.domain.observations import Failure, Observation, Success
from services.health.domain.states import State
from services.health.domain.subjects import Subject


def _labels(subject: Subject) -> dict[str, str]:
    return {"object_kind": subject.kind.value, "object": subject.id}


def observed(observations: Iterable[tuple[Subject, Observation | None]]) -> None:
    """Count outcomes that subjects observed: `success`, or the code of a failure's family."""
    counts: dict[tuple[Subject, str], int] = {}
    for subject, observation in observations:
        if isinstance(observation, Success):
            key = subject, "success"
        elif isinstance(observation, Failure):
            key = subject, observation.family.value
        else:
            continue
        counts[key] = counts.get(key, 0) + 1
    for (subject, result), count in counts.items():
        metrics.PROCESS.counter(names.HEALTH_OUTCOMES, **_labels(subject), result=result).inc(count)


def moved(subject: Subject, events: Iterable[Event]) -> None:
    """Count changes of state, and show the newest."""
    for event in events:
        if event.before is not None and event.before is not event.after:
            labels = _labels(subject) | {"from_state": event.before.value, "to_state": event.after.value}
            metrics.PROCESS.counter(names.HEALTH_TRANSITIONS, **labels).inc()
            shown(subject, event.after)


def shown(subject: Subject, present: State) -> None:
    """Show the present state of a subject."""
    for state in State:
        gauge = metrics.PROCESS.gauge(names.HEALTH_STATE, **_labels(subject), state=state.value)
        gauge.set(1 if state is present else 0)
