"""Replicate's predictions: clips and pictures of the models behind `api.replicate.com`.

Replicate honours no idempotency key and echoes no token of ours. Its list of predictions can prove that an unanswered
submission did not arrive; that one of them is ours it cannot prove, because two requests may be alike to the letter.
"""

from services.provider_adapter.adapters.replicate import cancel, poll, reconcile, submit
from services.provider_adapter.adapters.replicate.faults import TABLE
from services.provider_adapter.adapters.replicate.manifest import MANIFEST
from services.provider_adapter.domain.adapter import Adapter

ADAPTER = Adapter(manifest=MANIFEST, submit=submit, table=TABLE, poll=poll, cancel=cancel, reconcile=reconcile)
