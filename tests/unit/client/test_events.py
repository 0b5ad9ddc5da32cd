"""Events out of bytes."""

import json

from hypothesis import given
from hypothesis import strategies as st

from libs.client.events import EventReader


def spelt(sequence: int, kind: str = "node_started", **more: object) -> bytes:
    """One event as the server writes it."""
    data = json.dumps({"id": "e", "run_id": "r", "sequence": sequence, "kind": kind, "data": {}, **more})
    return f"id: {sequence}\nevent: {kind}\ndata: {data}\n\n".encode()


STREAM = (
    b"retry: 2000\n\n" + spelt(1, "run_created") + b": heartbeat\n\n" + spelt(2, "a_kind_of_tomorrow", novelty=[1])
    + b"id: 3\r\nunknown: x\r\ndata: " + json.dumps({"sequence": 3, "kind": "\u00e9", "data": {"a": "\n"}}).encode()
    + b"\r\n\r\n"
)  # fmt: skip


@given(st.lists(st.integers(1, len(STREAM) - 1), unique=True).map(sorted))
def test_events_however_the_bytes_are_cut(cuts: list[int]) -> None:
    """CLIENT-1: the same events for every way in which the bytes arrive; unknown kinds and fields are survived."""
    reader = EventReader()
    pieces = [STREAM[start:end] for start, end in zip([0, *cuts], [*cuts, len(STREAM)], strict=True)]
    found = [event for piece in pieces for event in reader.feed(piece)]
    assert [event.sequence for event in found] == [1, 2, 3]
    assert [event.kind for event in found] == ["run_created", "a_kind_of_tomorrow", "é"]
    assert found[2].data == {"a": "\n"}
    assert reader.retry_s == 2.0


def test_half_an_event_is_none() -> None:
    """CLIENT-1: what the connection cut in the middle comes again by the sequence; it is not told half."""
    reader = EventReader()
    assert reader.feed(spelt(1)[:-1]) == []
    assert [event.sequence for event in reader.feed(b"\n")] == [1]
