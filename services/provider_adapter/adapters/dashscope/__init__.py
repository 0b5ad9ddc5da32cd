"""Alibaba Model Studio (DashScope): asynchronous tasks of Wan and its like, clips and pictures.

A task is created only under `X-DashScope-Async: enable`. There is no idempotency key; the list of tasks names neither
input nor token, so it can prove that an unanswered submission did not arrive, and never that a task is ours.
"""

from services.provider_adapter.adapters.dashscope import cancel, poll, reconcile, submit
from services.provider_adapter.adapters.dashscope.faults import TABLE
from services.provider_adapter.adapters.dashscope.manifest import MANIFEST
from services.provider_adapter.domain.adapter import Adapter

ADAPTER = Adapter(manifest=MANIFEST, submit=submit, table=TABLE, poll=poll, cancel=cancel, reconcile=reconcile)
