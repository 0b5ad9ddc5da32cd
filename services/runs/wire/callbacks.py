"""Proto <-> domain for callbacks, and nothing else."""

from libs.rpc.values import time_to_proto
from pointsman.runs.v1 import callback_pb2
from services.runs.domain.callbacks import Callback, CallbackState


def callback_to_proto(callback: Callback) -> callback_pb2.Callback:
    """A message as callers see it; its next time only while there is one."""
    pending = callback.state is CallbackState.PENDING
    return callback_pb2.Callback(
        id=callback.id,
        run_id=callback.run_id,
        type=callback.type,
        url=callback.url,
        state=callback_pb2.CallbackState.Value(f"CALLBACK_STATE_{callback.state.upper()}"),
        attempts=callback.attempts,
        last_error=callback.last_error,
        create_time=time_to_proto(callback.created_at),
        next_time=time_to_proto(callback.next_at) if pending else None,
        finish_time=time_to_proto(callback.finished_at),
    )
