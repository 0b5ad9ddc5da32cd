"""Keys on record, newest first."""

from services.edge.domain.keys import Key
from services.edge.ports import Keys


async def list_keys(store: Keys, tenant: str, token: str, size: int) -> tuple[list[Key], str]:
    """(the page, the token of the next one or ""). An empty tenant means all; a token is the last id of a page."""
    page = await store.page(tenant, token, size + 1)
    return page[:size], page[size - 1].id if len(page) > size else ""
