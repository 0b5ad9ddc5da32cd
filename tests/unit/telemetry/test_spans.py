"""Spans: below one another, in kept traces, and nowhere without a tracer."""

import asyncio
import io
import json
import logging

import pytest

from libs.faults.fault import Fault
from libs.telemetry import names
from libs.telemetry.correlation import carry_traceparent, current_traceparent
from libs.telemetry.logs import configure
from libs.telemetry.spans import annotate, carried, continued, here, in_trace, span
from tests.support.tracing import Recorded, recorded

KEPT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
TRACE = KEPT.split("-")[1]


@pytest.fixture
def kept():
    """The spans that a test makes."""
    with recorded() as made:
        yield made


def test_durable_work_goes_on_in_the_trace_that_was_kept_with_it(kept: Recorded):
    """OPS-5: the span of a step is a child of the one that handed it over, and its own children are in that trace."""
    with continued(KEPT, names.SPAN_TASK_ADVANCE, {names.TASK_ID: "t1", names.RUN_ID: None}):
        with span(names.SPAN_SELECT):
            annotate({names.VERDICT: "chosen"})
            assert here().split("-")[1] == TRACE
    select, step = kept.spans
    assert f"{step.parent.span_id:016x}" == KEPT.split("-")[2]
    assert (select.parent.span_id, f"{select.context.trace_id:032x}") == (step.context.span_id, TRACE)
    assert (dict(step.attributes), dict(select.attributes)) == ({names.TASK_ID: "t1"}, {names.VERDICT: "chosen"})
    assert (here(), in_trace()) == ("", False)


def test_durable_work_without_a_trace_begins_one(kept: Recorded):
    """What was handed over before traces were kept is told all the same."""
    with continued("", names.SPAN_TASK_ADVANCE, {}):
        assert in_trace()
    assert kept.named(names.SPAN_TASK_ADVANCE).parent is None


def test_outside_a_trace_nothing_begins(kept: Recorded):
    """A round of a background loop makes no span."""
    with span(names.SPAN_SELECT):
        pass
    assert kept.spans == ()


def test_work_for_another_stands_in_the_others_trace(kept: Recorded):
    """A group's task is a first caller's: what it does for a second is the second's, and for nobody it is nobody's."""
    with continued(KEPT, names.SPAN_TASK_ADVANCE, {}):
        with carried(""):
            assert not in_trace()
            with span(names.SPAN_SELECT):
                pass
        with carried(KEPT.replace(TRACE, "a" * 32)), span(names.SPAN_SELECT):
            pass
        assert in_trace()
    (select,) = [item for item in kept.spans if item.name == names.SPAN_SELECT]
    assert f"{select.context.trace_id:032x}" == "a" * 32


@pytest.mark.parametrize(
    "error, code",
    [
        (Fault.of("content_rejected", "the words of a user"), "content_rejected"),
        (asyncio.CancelledError(), "cancelled"),
        (ValueError("sk-abcdefghijklmnop"), "internal"),
    ],
)
def test_a_failure_is_told_by_its_code(kept: Recorded, error: BaseException, code: str):
    """OPS-5, ERR-4: neither the text of an exception nor its traceback is in a trace."""
    with pytest.raises(type(error)), continued("", names.SPAN_TASK_ADVANCE, {}):
        raise error
    failed = kept.named(names.SPAN_TASK_ADVANCE)
    assert (failed.attributes[names.ERROR_TYPE], failed.status.description, failed.events) == (code, code, ())


def test_an_unlisted_attribute_is_refused(kept: Recorded):
    """OPS-5: what is not in the list cannot be told."""
    with continued("", names.SPAN_TASK_ADVANCE, {}), pytest.raises(ValueError, match="no attribute of"):
        annotate({"gen_ai.input.messages": "Hello"})


def test_a_log_line_names_the_span_that_it_was_written_in(kept: Recorded):
    """OPS-5: trace_id and span_id of a line are those of its own span."""
    stream, log = io.StringIO(), logging.getLogger("tests.spans")
    log.propagate = False
    configure("info", stream, logger=log)
    with continued(KEPT, names.SPAN_TASK_ADVANCE, {}):
        log.info("here")
    line = json.loads(stream.getvalue())
    assert (line["trace_id"], line["span_id"]) == (TRACE, f"{kept.spans[0].context.span_id:016x}")


def test_without_a_tracer_the_trace_is_carried_on():
    """OPS-5: a process that makes no spans cuts no trace, neither with what it does now nor with what it does later."""
    carry_traceparent("")
    with continued(KEPT, names.SPAN_TASK_ADVANCE, {"no": "name is looked at"}), span(names.SPAN_SELECT):
        assert current_traceparent() == here() == KEPT
        annotate({"no": "name is looked at"})
    assert here() == ""
