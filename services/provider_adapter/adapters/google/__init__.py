"""Google's Gemini API: generateContent as chat, embedContent, and Veo's long-running predictions as video.

Errors are google.rpc.Status, sometimes in a list. A prompt that is blocked is a 200 without candidates; an answer that
was cut short says so in `finishReason`. Nothing lists what was submitted, and there is no idempotency key.
"""

from services.provider_adapter.adapters.google import call, poll, stream, submit
from services.provider_adapter.adapters.google.faults import TABLE
from services.provider_adapter.adapters.google.manifest import MANIFEST
from services.provider_adapter.domain.adapter import Adapter

ADAPTER = Adapter(manifest=MANIFEST, table=TABLE, submit=submit, call=call, stream=stream, poll=poll)
