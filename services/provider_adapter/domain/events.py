"""Server-sent events out of bytes that come cut anywhere.

Laws of this file:
- the same bytes give the same events, however they are cut: in a character, between CR and LF, byte by byte;
- lines end in LF, CRLF or CR; an event ends at an empty line; comments and unknown fields are passed over;
- an event that the end of the bytes leaves open is given by `close`: who reads it judges whether it is whole.
"""

from typing import NamedTuple

LIMIT_BYTES = 32 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One event: its name ("" where it has none) and its data, lines joined by LF."""

    name: str
    data: bytes


class TooLong(ValueError):
    """One event is larger than anybody needs."""


class EventReader:
    """Feed it bytes; it gives events. An event without data is none."""

    __slots__ = ("_begun", "_data", "_name", "_open", "_size", "_skip_lf")

    def __init__(self) -> None:
        self._open: list[bytes] = []  # the parts of a line whose end has not come
        self._data: list[bytes] = []
        self._name = ""
        self._size = 0
        self._skip_lf = False
        self._begun = False

    def feed(self, data: bytes) -> list[Event]:
        """The events that these bytes complete. Raises TooLong beyond 32 MiB of one event."""
        if self._skip_lf and data:
            self._skip_lf = False
            if data[:1] == b"\n":
                data = data[1:]
        if not data:
            return []
        self._size += len(data)
        if b"\n" not in data and b"\r" not in data:
            self._keep(data)
            return []
        self._skip_lf = data[-1:] == b"\r"
        lines = (b"".join(self._open) + data).splitlines()
        self._open = [] if data[-1:] in (b"\n", b"\r") else [lines.pop()]
        found: list[Event] = []
        for line in lines:
            self._line(line, found)
        if found:
            self._size = len(self._open[0]) if self._open else 0
        elif self._size > LIMIT_BYTES:
            raise TooLong
        return found

    def close(self) -> list[Event]:
        """The event that was still open, if it has data."""
        found: list[Event] = []
        if self._open:
            rest, self._open = b"".join(self._open), []
            self._line(rest, found)
        self._line(b"", found)
        return found

    def _keep(self, data: bytes) -> None:
        if self._size > LIMIT_BYTES:
            raise TooLong
        self._open.append(data)

    def _line(self, line: bytes, found: list[Event]) -> None:
        if not self._begun:
            self._begun = True
            line = line.removeprefix(_BOM)
        if line[:6] == b"data: ":  # as nearly every line of a stream begins
            self._data.append(line[6:])
            return
        if not line:
            if self._data:
                found.append(Event(self._name, b"\n".join(self._data)))
                self._data = []
            self._name = ""
            return
        name, _, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._name = value.decode(errors="replace")
