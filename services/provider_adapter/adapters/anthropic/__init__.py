"""Anthropic's Messages, as chat: the conversation goes there in its shape and comes back in OpenAI's.

A refusal is an HTTP 200 with `stop_reason: refusal`; low credit is a 400 in words; an error in a stream is an event.
There are no records to ask about an unanswered call, and no idempotency key that is promised to be honoured.
"""

from services.provider_adapter.adapters.anthropic import call, stream
from services.provider_adapter.adapters.anthropic.faults import TABLE
from services.provider_adapter.adapters.anthropic.manifest import MANIFEST
from services.provider_adapter.domain.adapter import Adapter

ADAPTER = Adapter(manifest=MANIFEST, table=TABLE, call=call, stream=stream)
