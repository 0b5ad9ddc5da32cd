"""The history of one subject or of all, page by page, oldest first."""

from dataclasses import dataclass

from libs.faults.fault import Fault
from libs.rpc.paging import number_in
from services.health.domain.subjects import Subject
from services.health.ports import HealthStore, Recorded

PAGE_SIZE = 100
PAGE_SIZE_MAX = 1000


@dataclass(frozen=True, slots=True)
class Page:
    """Events and the token of the next page, empty on the last."""

    events: tuple[Recorded, ...]
    next_token: str


class ListEvents:
    """A token is the position of the last event of its page."""

    def __init__(self, store: HealthStore) -> None:
        self._store = store

    async def __call__(self, subject: Subject | None, page_size: int, page_token: str) -> Page:
        """One page. Faults: `malformed_request` for a token that no page gave, `validation_failed` for a size that no
        page can have."""
        after = number_in(page_token)
        if not 0 <= page_size <= PAGE_SIZE_MAX:
            raise Fault.invalid(("/page_size", f"must be 1..{PAGE_SIZE_MAX}"))
        size = page_size or PAGE_SIZE
        found = await self._store.events(subject, after, size + 1)
        page = tuple(found[:size])
        return Page(page, str(page[-1].position) if len(found) > size else "")
