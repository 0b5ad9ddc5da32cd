"""Azure OpenAI: OpenAI's shapes under a resource of one's own, each model being a deployment with its own quota.

The base URL decides between its two interfaces: one that ends in `/openai/v1` takes the deployment in the body; any
other takes it in the path, and `api-version` from its query (`https://NAME.openai.azure.com?api-version=2024-10-21`).
The key is an API key; tokens of Entra ID expire within the hour and are not refreshed here.
"""

from services.provider_adapter.adapters.azure_openai import submit
from services.provider_adapter.adapters.azure_openai.dialect import AZURE
from services.provider_adapter.adapters.azure_openai.faults import TABLE
from services.provider_adapter.adapters.azure_openai.manifest import MANIFEST
from services.provider_adapter.adapters.openai.call import OpenAICall, OpenAIStream
from services.provider_adapter.domain.adapter import Adapter

ADAPTER = Adapter(manifest=MANIFEST, table=TABLE, submit=submit, call=OpenAICall(AZURE), stream=OpenAIStream(AZURE))
