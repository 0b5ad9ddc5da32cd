"""Values of the wire for the fakes."""

from datetime import UTC, datetime
from typing import Any

from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp

START = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


def at(seconds: float = 0) -> Timestamp:
    """A time after the start."""
    stamp = Timestamp()
    stamp.FromSeconds(int(START.timestamp() + seconds))
    return stamp


def struct(**values: Any) -> Struct:
    """A JSON object."""
    made = Struct()
    made.update(values)
    return made
