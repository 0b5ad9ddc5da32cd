"""OpenAI and servers that speak like it: pictures and speech, both finished within the submission.

There is no list or lookup to reconcile with, and no idempotency key that the provider promises to honour. Some servers
of this dialect do honour one: their Channel says `reconcile_by: idempotency_key`, and then the client token is the key.
"""

from services.provider_adapter.adapters.openai import submit
from services.provider_adapter.adapters.openai.faults import TABLE
from services.provider_adapter.adapters.openai.manifest import MANIFEST
from services.provider_adapter.domain.adapter import Adapter

ADAPTER = Adapter(manifest=MANIFEST, submit=submit, table=TABLE)
