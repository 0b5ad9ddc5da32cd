"""Kling: video tasks from words, from first and last frames, and from several reference images.

Our client token travels as `external_task_id`, which is unique in an account and can be asked for: an unanswered
submission is looked up, not searched for. There is no cancel. A key of the newer sort is needed, which is sent as is.
"""

from services.provider_adapter.adapters.kling import poll, reconcile, submit
from services.provider_adapter.adapters.kling.faults import TABLE
from services.provider_adapter.adapters.kling.manifest import MANIFEST
from services.provider_adapter.domain.adapter import Adapter

ADAPTER = Adapter(manifest=MANIFEST, submit=submit, table=TABLE, poll=poll, reconcile=reconcile)
