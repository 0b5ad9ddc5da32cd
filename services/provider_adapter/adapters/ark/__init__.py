"""Volcengine Ark and BytePlus ModelArk: Seedance video tasks and Seedream pictures.

Ark honours no idempotency key. Our client token travels in `safety_identifier`, which tasks echo, so an unanswered
submission is found again by listing. A failed task is an HTTP 200 with `status: failed`.
"""

from services.provider_adapter.adapters.ark import cancel, poll, reconcile, submit
from services.provider_adapter.adapters.ark.faults import TABLE
from services.provider_adapter.adapters.ark.manifest import MANIFEST
from services.provider_adapter.domain.adapter import Adapter

ADAPTER = Adapter(manifest=MANIFEST, submit=submit, table=TABLE, poll=poll, cancel=cancel, reconcile=reconcile)
