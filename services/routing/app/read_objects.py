"""Reads the catalogue's history: one object at one revision, or the newest of many."""

import base64
import binascii
import json
from collections.abc import Sequence

from libs.faults.fault import Fault
from services.routing.domain.catalog_file import ObjectKind
from services.routing.domain.catalog_history import ObjectRevision
from services.routing.ports import CatalogStore

DEFAULT_PAGE, MAX_PAGE = 100, 1000


async def get_object(store: CatalogStore, kind: ObjectKind, object_id: str, revision: int) -> ObjectRevision:
    """That revision, 0 = the newest. Fault `not_found`."""
    found = await store.object(kind, object_id, revision)
    if found is None:
        at = f" at revision {revision}" if revision else ""
        raise Fault.of("not_found", f"there is no {kind} {object_id!r}{at} in the catalogue")
    return found


async def list_objects(
    store: CatalogStore, kind: ObjectKind | None, include_retired: bool, page_size: int, page_token: str
) -> tuple[Sequence[ObjectRevision], str]:
    """(a page in the order of sort and id, the token of the next one). Faults: `validation_failed` for a size out of
    bounds, `malformed_request` for a token that is not ours."""
    if not 0 <= page_size <= MAX_PAGE:
        raise Fault.invalid(("/page_size", f"must be from 1 to {MAX_PAGE}"))
    count = page_size or DEFAULT_PAGE
    found = await store.objects(kind, include_retired, _key_of(page_token), count + 1)
    page = found[:count]
    return page, _token_of(page[-1]) if len(found) > count else ""


def _token_of(item: ObjectRevision) -> str:
    return base64.urlsafe_b64encode(json.dumps([str(item.kind), item.id]).encode()).decode()


def _key_of(token: str) -> tuple[str, str] | None:
    if not token:
        return None
    try:
        kind, object_id = json.loads(base64.urlsafe_b64decode(token.encode()))
    except (ValueError, TypeError, binascii.Error) as error:
        raise Fault.of("malformed_request", "the page token is not one of ours") from error
    return str(kind), str(object_id)
