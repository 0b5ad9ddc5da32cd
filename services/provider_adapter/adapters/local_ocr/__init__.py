"""A server that reads pictures, on a machine of one's own: `POST {base_url}/ocr`.

The request is `{model, image: {url} or {base64, media_type}, task}`, the answer `{text, blocks, pages}`: blocks in
reading order with their boxes in pixels, `pages` their number. Errors are OpenAI's shape, `{error: {code, message}}`.
"""

from services.provider_adapter.adapters.local_ocr import call
from services.provider_adapter.adapters.local_ocr.faults import TABLE
from services.provider_adapter.adapters.local_ocr.manifest import MANIFEST
from services.provider_adapter.domain.adapter import Adapter

ADAPTER = Adapter(manifest=MANIFEST, table=TABLE, call=call)
