"""MiniMax (Hailuo): video tasks of both its interfaces; the model decides which one.

The Channel's base URL is the bare origin (`https://api.minimax.io`), because the version stands in each path. A refusal
is an HTTP 200 whose `base_resp.status_code` is not 0. Nothing of ours is echoed and no key is honoured: after a lost
answer the second interface's list can prove that nothing arrived, and name what looks like ours; the first has no list.
"""

from services.provider_adapter.adapters.minimax import cancel, poll, reconcile, submit
from services.provider_adapter.adapters.minimax.faults import TABLE
from services.provider_adapter.adapters.minimax.manifest import MANIFEST
from services.provider_adapter.domain.adapter import Adapter

ADAPTER = Adapter(manifest=MANIFEST, submit=submit, table=TABLE, poll=poll, cancel=cancel, reconcile=reconcile)
