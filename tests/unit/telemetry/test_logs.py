"""Log lines: JSON, complete, and without secrets."""

import io
import json
import logging

import pytest

from libs.telemetry.correlation import bind, bound, carry_traceparent, facts
from libs.telemetry.logs import JsonLines, PlainLines, configure

log = logging.getLogger("tests.telemetry")


@pytest.fixture
def stream() -> io.StringIO:
    """What is logged, as `configure` writes it. A logger of this test's own: the root belongs to the test runner."""
    caught = io.StringIO()
    log.propagate = False
    configure("debug", caught, logger=log)
    return caught


def last(stream: io.StringIO) -> dict:
    """The last line, parsed."""
    return json.loads(stream.getvalue().splitlines()[-1])


def test_a_line_is_one_json_object_with_everything(stream: io.StringIO):
    """OPS-5: JSON logs with time, level, logger, message, extras and the facts of the request."""
    with bound(request_id="01JREQUEST", tenant="studio-a"):
        log.warning("lease %s expired", "l-7", extra={"supply": "a/seedance"})
    line = last(stream)
    assert line["time"].endswith("Z")
    assert (line["level"], line["logger"], line["message"]) == ("warning", "tests.telemetry", "lease l-7 expired")
    assert (line["request_id"], line["tenant"], line["supply"]) == ("01JREQUEST", "studio-a", "a/seedance")


def test_nothing_secret_is_written(stream: io.StringIO):
    """ERR-4: message, extras and traceback are redacted on their way out."""
    try:
        raise RuntimeError("refused key sk-abcdefghijklmnop")
    except RuntimeError:
        log.exception("Bearer abcdefghijkl", extra={"prompt": "a cat", "url": "https://x/y?sig=deadbeef"})
    text = stream.getvalue()
    for secret in ("sk-abcdef", "abcdefghijkl", "a cat", "deadbeef"):
        assert secret not in text
    assert "RuntimeError" in last(stream)["error"]


def test_a_trace_is_named(stream: io.StringIO):
    """OPS-5: a line written inside a trace names it, and the span."""
    carry_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
    log.info("here")
    assert last(stream)["trace_id"] == "4bf92f3577b34da6a3ce929d0e0e4736"
    assert last(stream)["span_id"] == "00f067aa0ba902b7"
    carry_traceparent("")


def test_a_wrong_format_loses_no_line():
    """A mistake in a log call is not a mistake in the work."""
    record = logging.makeLogRecord({"msg": "%d items", "args": ("many",)})
    assert json.loads(JsonLines().format(record))["message"] == "%d items"


def test_a_terminal_gets_plain_lines():
    """OPS-5: people read lines, machines read JSON."""
    record = logging.makeLogRecord({"name": "x", "levelname": "INFO", "msg": "started", "port": 8080})
    plain = PlainLines().format(record)
    assert plain.endswith("info    x: started  port=8080")
    assert json.loads(JsonLines().format(record))["port"] == 8080


def test_facts_end_with_their_block():
    """What was bound for a block does not leak out of it."""
    with bound(task_id="t-1"):
        bind(attempt_id="a-1")
        assert facts() == {"task_id": "t-1", "attempt_id": "a-1"}
    assert "task_id" not in facts()
