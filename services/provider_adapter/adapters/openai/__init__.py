"""OpenAI and servers that speak like it: chat, embeddings, pictures and speech, each finished within its call.

There is no list or lookup to reconcile with, and no idempotency key that the provider promises to honour. Some servers
of this dialect do honour one: their Channel says `reconcile_by: idempotency_key`, and then the client token is the key.
"""

from services.provider_adapter.adapters.openai import submit
from services.provider_adapter.adapters.openai.call import OpenAICall, OpenAIStream
from services.provider_adapter.adapters.openai.dialect import OPENAI
from services.provider_adapter.adapters.openai.faults import TABLE
from services.provider_adapter.adapters.openai.manifest import MANIFEST
from services.provider_adapter.domain.adapter import Adapter

ADAPTER = Adapter(manifest=MANIFEST, table=TABLE, submit=submit, call=OpenAICall(OPENAI), stream=OpenAIStream(OPENAI))
