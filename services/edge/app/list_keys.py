"""Keys on record, newest first."""

from libs.rpc.paging import id_in
from services.edge.domain.keys import Key
from services.edge.ports import Keys


async def list_keys(store: Keys, tenant: str, token: str, size: int) -> tuple[list[Key], str]:
    """(the page, the token of the next one or ""). An empty tenant means all; a token is the last id of a page.

    Fault malformed_request for a token that no page gave."""
    page = await store.page(tenant, id_in(token), size + 1)
    return page[:size], page[size - 1].id if len(page) > size else ""
