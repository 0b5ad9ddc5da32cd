"""Reading an answer as JSON, and the first lines of every parse."""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from libs.faults.fault import Fault
from services.provider_adapter.domain.calls import Usage
from services.provider_adapter.domain.exchange import HttpResponse, Phase, Reply
from services.provider_adapter.domain.inputs import loaded
from services.provider_adapter.domain.judgement import judge
from services.provider_adapter.domain.table import FaultTable

BEYOND_COUNTING = 1e18
_EPOCH = datetime.fromtimestamp(0, UTC)


def document(
    response: HttpResponse, phase: Phase, table: FaultTable, *, synchronous: bool = False
) -> Mapping[str, Any]:
    """The JSON object of a 2xx answer. Raises Fault for any other status or body."""
    if 200 <= response.status < 300:
        value = loaded(response.body)
        if isinstance(value, Mapping):
            return value
    raise refused(response, phase, table, synchronous=synchronous)


def refused(response: HttpResponse, phase: Phase, table: FaultTable, *, synchronous: bool = False) -> Fault:
    """The fault of an answer that is no success."""
    return judge(Reply.of(response), phase, table, answered_at(response), synchronous=synchronous)


def answered_so(fault: Fault, usage: Usage | None) -> Fault:
    """The same for a refusal that the model itself has said: it has read and written, and is charged for it. `answered`
    is what it tells of that: `11/7`, tokens read and made; empty where it tells nothing."""
    known = usage is not None and usage.input_tokens is not None
    told = f"{usage.input_tokens}/{usage.output_tokens or 0}" if usage is not None and known else ""
    return fault.replaced(metadata={**fault.metadata, "answered": told})


def answered_at(response: HttpResponse) -> datetime:
    """The provider's own time of its answer (its Date header): what dates in Retry-After are relative to."""
    try:
        when = parsedate_to_datetime(response.headers.get("date", ""))
    except (TypeError, ValueError, IndexError):
        return _EPOCH
    return when if when.tzinfo is not None else when.replace(tzinfo=UTC)


def ahead_s(response: HttpResponse, now: datetime | None) -> float:
    """Seconds by which a clock that says `now` is ahead of the provider's; 0 where one of them does not tell."""
    answered = answered_at(response)
    return 0.0 if now is None or answered == _EPOCH else (now - answered).total_seconds()


def text_of(value: Any) -> str:
    """A text field; "" for anything else."""
    return value if isinstance(value, str) else ""


def object_of(value: Any) -> Mapping[str, Any]:
    """An object field; empty for anything else."""
    return value if isinstance(value, (dict, Mapping)) else {}  # a dictionary first: it is told apart without a call


def list_of(value: Any) -> list[Any]:
    """A list field; empty for anything else."""
    return value if isinstance(value, list) else []


def number_of(value: Any) -> float | None:
    """A number field; None for anything else, also for what JSON readers let in and nobody can count with: NaN, the
    infinities, whole numbers of hundreds of digits."""
    number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < BEYOND_COUNTING
    return value if number else None


def number_in(text: Any) -> float | None:
    """The finite number that a field tells as a number or as a text; None where it tells none."""
    if not isinstance(text, str):
        return number_of(text)
    try:
        return number_of(float(text))
    except ValueError:
        return None


def chosen(record: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Those of the named fields that the record has."""
    return {name: record[name] for name in names if record.get(name) is not None}


def alike(theirs: Any, ours: str) -> bool:
    """Whether a text of a record may be ours: it says the same but for white space, or it is not told."""
    if not isinstance(theirs, str) or not theirs.strip():
        return True
    return theirs.split() == ours.split()
