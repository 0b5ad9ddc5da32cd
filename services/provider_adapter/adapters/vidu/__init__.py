"""Vidu: video tasks from words, a first frame, two frames, or reference images.

Our client token travels as `payload`, which tasks and callbacks echo, but nothing can be listed or looked up by it: an
answer that was lost cannot be found out. Money that is used up and a model that is away are a 400 as well.
"""

from services.provider_adapter.adapters.vidu import cancel, poll, submit
from services.provider_adapter.adapters.vidu.faults import TABLE
from services.provider_adapter.adapters.vidu.manifest import MANIFEST
from services.provider_adapter.domain.adapter import Adapter

ADAPTER = Adapter(manifest=MANIFEST, submit=submit, table=TABLE, poll=poll, cancel=cancel)
