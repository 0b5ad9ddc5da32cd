"""OpenAI and servers that speak like it: chat, embeddings, pictures and speech within their call, and clips as jobs.

There is no idempotency key that the provider promises to honour. Clips are listed with their prompts, so the list can
prove that an unanswered submission did not arrive, and never that a clip is ours. Some servers of this dialect do
honour a key: their Channel says `reconcile_by: idempotency_key`, and then the client token is the key.
"""

from services.provider_adapter.adapters.openai import poll, reconcile, submit
from services.provider_adapter.adapters.openai.call import OpenAICall, OpenAIStream
from services.provider_adapter.adapters.openai.dialect import OPENAI
from services.provider_adapter.adapters.openai.faults import TABLE
from services.provider_adapter.adapters.openai.manifest import MANIFEST
from services.provider_adapter.domain.adapter import Adapter

ADAPTER = Adapter(
    manifest=MANIFEST,
    table=TABLE,
    submit=submit,
    call=OpenAICall(OPENAI),
    stream=OpenAIStream(OPENAI),
    poll=poll,
    reconcile=reconcile,
)
