"""Callbacks."""

from pointsman.runs.v1 import callback_pb2
from services.edge.domain import callback_shapes
from services.edge.wire.values import moment, word


def callback(message: callback_pb2.Callback) -> callback_shapes.Callback:
    """A message as callers see it."""
    return callback_shapes.Callback(
        id=message.id,
        type=message.type,
        url=message.url,
        state=word(callback_pb2.CallbackState, message.state, "CALLBACK_STATE_"),
        attempts=message.attempts,
        last_error=message.last_error or None,
        created_at=moment(message.create_time),
        next_at=moment(message.next_time),
        finished_at=moment(message.finish_time),
    )
