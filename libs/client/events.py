"""Server-sent events from bytes: whole frames, however the bytes were cut on their way (SSE-1). Pure."""

from dataclasses import dataclass, field

import msgspec

from libs.client.shapes import Event

_decode = msgspec.json.Decoder(Event).decode


@dataclass(slots=True)
class EventReader:
    """Feed it bytes; it gives the events that are complete. `retry_s` is what the server last asked for."""

    retry_s: float | None = None
    _rest: bytes = b""
    _data: list[bytes] = field(default_factory=list)

    def feed(self, chunk: bytes) -> list[Event]:
        """Events that these bytes completed. Comments and fields that are not known are passed over."""
        lines = (self._rest + chunk).split(b"\n")
        self._rest = lines.pop()
        found = [event for line in lines if (event := self._line(line.removesuffix(b"\r"))) is not None]
        return found

    def _line(self, line: bytes) -> Event | None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if not line:
            data, self._data = b"\n".join(self._data), []
            return _decode(data) if data else None
        if name == b"data":
            self._data.append(value)
        elif name == b"retry" and value.isdigit():
            self.retry_s = int(value) / 1000
        return None
