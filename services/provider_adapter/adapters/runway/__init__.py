"""Runway: video tasks from words, from frames or pictures, and from a clip.

It keeps no list, echoes nothing of ours and promises no idempotency key: an answer that was lost cannot be found out.
More tasks than the account may run are taken and wait (`THROTTLED`); a 429 is the cap of the day. Money that is used up
is a 400.
"""

from services.provider_adapter.adapters.runway import cancel, poll, submit
from services.provider_adapter.adapters.runway.faults import TABLE
from services.provider_adapter.adapters.runway.manifest import MANIFEST
from services.provider_adapter.domain.adapter import Adapter

ADAPTER = Adapter(manifest=MANIFEST, submit=submit, table=TABLE, poll=poll, cancel=cancel)
