"""Every recorded exchange: the request that is built and the outcome that is read, without a socket."""

import base64
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from libs.faults.fault import Fault
from services.provider_adapter.adapters.registry import ADAPTERS
from services.provider_adapter.domain.adapter import Page
from services.provider_adapter.domain.calls import ANSWERED_KINDS, Answered, Report, StreamReader
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse
from services.provider_adapter.domain.inputs import JsonInput
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.outcomes import Cancelled, Listed, Made, Polled, Submitted

FOLDER = Path(__file__).parents[2] / "cases" / "exchanges"
RECORDS = sorted(FOLDER.glob("*/*.json"))


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_recorded_exchange(path: Path) -> None:
    """ERR-1 ERR-1a: what is sent, and what the answer means, are those on record."""
    record = json.loads(path.read_text(encoding="utf-8"))
    adapter = ADAPTERS[path.parent.name]
    base_url = record.get("base_url", "https://provider.example/v1")
    part = getattr(adapter, record["operation"])
    job = _job(record["job"])
    more: list[Any] = [record["provider_task_id"]] if "provider_task_id" in record else []
    if "page" in record:
        more = [Page(record["page"], record.get("after", ""))]
    try:
        built = part.build(job, Endpoint("c", path.parent.name, base_url, "env:KEY"), *more)
        if record["request"] is None:  # nothing is asked of the provider about such a job
            assert built is None
            return
        assert _request(built) == _wanted_request(record["request"])
        response = _response(record["response"])
        if record["operation"] == "stream":
            outcome = _streamed(part.reader(job, response.headers), response.body)
        else:
            understood = part.parse(response, job)
            if "further" in record:  # the second question of the same poll
                assert _request(understood.further.request) == _wanted_request(record["further"]["request"])
                understood = understood.further.parse(_response(record["further"]["response"]), job)
            outcome = _outcome(understood)
    except Fault as fault:
        outcome = {"fault": _fault(fault)}
    _assert_within(record["outcome"], outcome)


def test_every_adapter_is_on_record() -> None:
    """ERR-1: no adapter goes without recorded exchanges, and no operation of one."""
    on_record = {(path.parent.name, json.loads(path.read_text())["operation"]) for path in RECORDS}
    offered = {
        (name, part)
        for name, adapter in ADAPTERS.items()
        for part in ("submit", "call", "stream", "poll", "cancel", "reconcile")
        if getattr(adapter, part) is not None
    }
    assert on_record == offered


def _job(given: Mapping[str, Any]) -> Job:
    what = given["input"]
    if given["kind"] in ANSWERED_KINDS:
        what = JsonInput(json.dumps(what).encode())
    return Job("attempt", given["token"], given["kind"], given["model"], what)


def _request(request: HttpRequest) -> dict[str, Any]:
    return {
        "method": request.method,
        "path": request.path,
        "query": [list(pair) for pair in request.query],
        "headers": dict(request.headers),
        "fresh": request.fresh,
        "json": None if request.body is None else json.loads(request.body),
    }


def _wanted_request(given: Mapping[str, Any]) -> dict[str, Any]:
    return {"query": [], "json": None} | dict(given)


def _response(given: Mapping[str, Any]) -> HttpResponse:
    if "events" in given:
        body = b"".join(map(_event, given["events"]))
    elif "json" in given:
        body = json.dumps(given["json"]).encode()
    elif "base64" in given:
        body = base64.b64decode(given["base64"])
    else:
        body = given["text"].encode()
    return HttpResponse(given["status"], given.get("headers", {}), body)


def _event(given: Any) -> bytes:
    """One event: a name and data as `[name, data]`, data alone, or text as it stands."""
    if isinstance(given, str):
        return given.encode()
    name, data = given if isinstance(given, list) else ("", given)
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()


def _streamed(reader: StreamReader, body: bytes) -> dict[str, Any]:
    pieces = [*reader.feed(body), *reader.close()]
    told: dict[str, Any] = {"chunks": [json.loads(piece.chunk) for piece in pieces]}
    told |= {"tokens": sum(piece.token for piece in pieces), "unknown_fields": list(reader.unknown_fields)}
    if reader.ended:
        return told | {"report": _report(reader.report())}
    return told | {"fault": _fault(reader.failure or reader.unfinished())}


def _report(report: Report) -> dict[str, Any]:
    told = {name: value for name, value in structs.asdict(report.usage).items() if value is not None}
    return {"usage": told} | {
        "finish_reason": report.finish_reason,
        "provider_request_id": report.provider_request_id,
        "ignored_fields": list(report.ignored_fields),
        "reported_cost": None if report.reported_cost is None else report.reported_cost.to_json(),
    }


def _fault(fault: Fault) -> dict[str, Any]:
    return fault.to_json() | {key: fault.metadata.get(key) for key in ("evidence", "reason")}


def _made(made: Made) -> dict[str, Any]:
    media = [
        {
            "family": item.family,
            **({"url": item.url} if item.url else {"sha256": hashlib.sha256(item.data).hexdigest()}),
            **({"keyed": True} if item.keyed else {}),
        }
        for item in made.media
    ]
    return {"media": media, "output": dict(made.output), "usage": dict(made.usage)}


def _outcome(outcome: Any) -> dict[str, Any]:
    match outcome:
        case Submitted():
            told: dict[str, Any] = {"provider_task_id": outcome.provider_task_id}
        case Polled():
            told = {"state": outcome.state.value, "further": outcome.further is not None}
            if outcome.failure is not None:
                told["failure"] = _fault(outcome.failure)
        case Answered():
            told = {"output": json.loads(outcome.output), "report": _report(outcome.report)}
        case Cancelled():
            return {"cancelled": outcome.cancelled}
        case Listed():
            names = ("found", "seen", "total", "oldest_s", "descending", "after", "ended")
            told = {name: getattr(outcome, name) for name in names}
            told |= {name: list(getattr(outcome, name)) for name in ("unmarked_s", "likely")}
    if getattr(outcome, "made", None) is not None:
        told["made"] = _made(outcome.made)
    return told | {"unknown_fields": list(outcome.unknown_fields)}


def _assert_within(wanted: Mapping[str, Any], told: Mapping[str, Any]) -> None:
    """Every value on record is told; unknown fields are those on record, none when the record has none."""
    if "fault" not in wanted and "cancelled" not in wanted:
        wanted = {"unknown_fields": []} | dict(wanted)
    for name, value in wanted.items():
        if name == "report":
            _assert_within(dict(value) | {"cancelled": None}, dict(told[name]) | {"cancelled": None})
        elif name in ("fault", "failure"):
            assert name in told, told
            _assert_within(dict(value) | {"cancelled": None}, dict(told[name]) | {"cancelled": None})
        else:
            assert told.get(name) == value, f"{name} of {told}"
