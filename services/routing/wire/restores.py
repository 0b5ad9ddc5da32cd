"""Restores."""

from datetime import datetime

from libs.faults.fault import Fault
from libs.rpc.values import time_from_proto, time_to_proto
from pointsman.routing.v1 import restore_pb2
from services.routing.domain.doubt import Restore


def told_from_proto(message: restore_pb2.DeclareRestoredRequest) -> tuple[datetime | None, bool]:
    """(the moment of the backup, whether it is over). Fault `validation_failed`."""
    try:
        backup_at = time_from_proto(message.backup_time) if message.HasField("backup_time") else None
    except (OverflowError, ValueError):
        raise Fault.invalid(("/backup_at", "is a time that no calendar has")) from None
    if backup_at is None and not message.over:
        raise Fault.invalid(("/backup_at", "is required: the moment up to which the backup holds everything"))
    return backup_at, message.over


def answer_to_proto(restores: list[Restore], tasks: int) -> restore_pb2.DeclareRestoredResponse:
    """What is known by now, and how many Tasks it is about."""
    return restore_pb2.DeclareRestoredResponse(
        restores=[
            restore_pb2.Restore(
                backup_time=time_to_proto(item.backup_at),
                notice_time=time_to_proto(item.noticed_at),
                over_time=time_to_proto(item.over_at),
            )
            for item in restores
        ],
        task_count=tasks,
    )
