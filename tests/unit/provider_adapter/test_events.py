"""Server-sent events out of bytes that come cut anywhere."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from services.provider_adapter.domain.events import LIMIT_BYTES, Event, EventReader, TooLong

ENDS = (b"\n", b"\r\n", b"\r")
TEXTS = st.text(
    st.characters(exclude_characters="\r\n\x00", exclude_categories=("Cs",)), max_size=12
)  # no NUL: an id may not hold one
LINES = st.one_of(
    TEXTS.map(lambda text: ("data", text)),
    TEXTS.map(lambda text: ("event", text)),
    TEXTS.map(lambda text: ("", text)),
    TEXTS.map(lambda text: ("id", text)),
    st.just(("blank", "")),
)


def whole(body: bytes) -> list[Event]:
    """The events of a body that comes at once."""
    reader = EventReader()
    return reader.feed(body) + reader.close()


@given(st.lists(st.tuples(LINES, st.sampled_from(ENDS)), max_size=12), st.data())
@example([(("data", "é"), b"\r\n"), (("blank", ""), b"\r\n")], None)
def test_the_same_bytes_give_the_same_events(lines: list[tuple[tuple[str, str], bytes]], data: st.DataObject) -> None:
    """SYN-8: cut in a character, between CR and LF, byte by byte or nowhere, what was said is the same."""
    body = b"".join((b"" if name == "blank" else f"{name}: {text}".encode()) + end for (name, text), end in lines)
    expected = whole(body)
    by_bytes = EventReader()
    found = [event for index in range(len(body)) for event in by_bytes.feed(body[index : index + 1])]
    assert found + by_bytes.close() == expected
    if data is None:
        return
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=4)))
    in_parts = EventReader()
    found = []
    for start, stop in zip([0, *cuts], [*cuts, len(body)], strict=True):
        found += in_parts.feed(body[start:stop])
    assert found + in_parts.close() == expected


@given(st.lists(st.tuples(TEXTS, st.lists(TEXTS, min_size=1, max_size=3)), max_size=4), st.sampled_from(ENDS))
def test_events_are_what_was_said(said: list[tuple[str, list[str]]], end: bytes) -> None:
    """SYN-8: names and data come back as they were sent, whatever ends a line."""
    body = b"".join(
        end.join([f"event: {name}".encode(), *(f"data: {line}".encode() for line in lines)]) + end + end
        for name, lines in said
    )
    assert whole(body) == [Event(name, "\n".join(lines).encode()) for name, lines in said]


@pytest.mark.parametrize(
    ("body", "events"),
    [
        (b"\xef\xbb\xbfdata: a\n\n", [Event("", b"a")]),
        (b": a comment\n\ndata: a\n\n", [Event("", b"a")]),
        (b"data:a\ndata: b\ndata\n\n", [Event("", b"a\nb\n")]),
        (b"event: lonely\n\ndata: a\n\n", [Event("", b"a")]),
        (b"data: a", [Event("", b"a")]),
        (b"event: x\ndata: a\n", [Event("x", b"a")]),
        (b"data: a\r\rdata: b\r\r", [Event("", b"a"), Event("", b"b")]),
        (b"", []),
        (b"\n\n\n", []),
    ],
    ids=["mark", "comment", "lines", "no-data", "open-line", "open-event", "returns", "nothing", "blank"],
)
def test_the_rules_of_the_format(body: bytes, events: list[Event]) -> None:
    """SYN-8: comments, marks and empty events are passed over; what the end leaves open is given last."""
    assert whole(body) == events


def test_an_event_is_bounded() -> None:
    """ERR-4: an event without an end is given up, not kept in memory; many events together have no bound."""
    reader = EventReader()
    block = b"data: " + b"x" * (1 << 20)
    for _ in range(3 * LIMIT_BYTES // len(block)):
        assert len(reader.feed(block + b"\n\n")) == 1
    for _ in range(LIMIT_BYTES // len(block) - 1):
        assert reader.feed(block) == []
    with pytest.raises(TooLong):
        reader.feed(block * 2)
