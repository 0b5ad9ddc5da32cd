"""Deadlines are mandatory and are passed on.

gRPC for Python does not propagate deadlines by itself. Here the absolute deadline of the incoming call becomes the
deadline of the task; the outgoing side (`libs.rpc.outgoing`) never asks for more than what remains of it.
"""

import asyncio

from libs.faults.fault import Fault
from libs.kernel.deadlines import carry_deadline
from libs.rpc.identity import CALLER
from libs.rpc.interceptors.incoming import IncomingCall


class DeadlineInterceptor:
    """Refuses a call without a deadline.

    `assumed_s` is for a door that strangers use (grpcurl, buf curl): a call that names no caller of ours and carries
    no deadline is then treated as if it had this one. Our own contexts are always refused.
    """

    def __init__(self, assumed_s: float | None = None) -> None:
        self._assumed_s = assumed_s

    def opened(self, call: IncomingCall) -> None:
        """Put the absolute deadline (in the loop's monotonic seconds) into the task."""
        remaining = call.context.time_remaining()
        if remaining is None:
            if self._assumed_s is None or CALLER in call.metadata:
                raise Fault.of("deadline_required", f"{call.method.path} was called without a deadline")
            remaining = self._assumed_s
        carry_deadline(asyncio.get_running_loop().time() + remaining)

    def closed(self, call: IncomingCall) -> None:
        """Nothing: the deadline dies with the task."""
