"""fal's queue: clips and pictures of the models behind `queue.fal.run`.

fal repeats a queued request by itself up to ten times unless it is told not to; every submission tells it. There is no
key and no list by which an unanswered submission could be found again. A failed request is COMPLETED too, with an
`error` inside, and its result has an address of its own.
"""

from services.provider_adapter.adapters.fal import cancel, poll, submit
from services.provider_adapter.adapters.fal.faults import TABLE
from services.provider_adapter.adapters.fal.manifest import MANIFEST
from services.provider_adapter.domain.adapter import Adapter

ADAPTER = Adapter(manifest=MANIFEST, submit=submit, table=TABLE, poll=poll, cancel=cancel)
