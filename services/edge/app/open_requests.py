"""What each tenant holds open at this process: places, and the bytes of bodies (AUTH-2).

Counted in memory: a tenant with nothing open takes none. A place is given back once, by whoever took it.
"""

from collections import Counter

from services.edge.domain.open_limits import Hold, OpenLimits, one_too_many, too_heavy


class OpenRequests:
    """The places of this process."""

    def __init__(self, limits: OpenLimits) -> None:
        self._limits = limits
        self._held: Counter[tuple[str, Hold]] = Counter()
        self._bytes: Counter[str] = Counter()

    def take(self, tenant: str, hold: Hold) -> "Place":
        """A place, until it is released. Fault quota_exceeded where the tenant has none left."""
        limit = self._limits.of(hold)
        if limit and self._held[tenant, hold] >= limit:
            raise one_too_many(tenant, hold, limit)
        self._held[tenant, hold] += 1
        return Place(self, tenant, hold)

    def held(self, tenant: str, hold: Hold) -> int:
        """How many of these the tenant has open now."""
        return self._held.get((tenant, hold), 0)

    def bytes_held(self, tenant: str) -> int:
        """How many bytes of bodies the tenant has in memory now."""
        return self._bytes.get(tenant, 0)

    def weigh(self, tenant: str, more: int) -> None:
        """So many more bytes are coming. Fault quota_exceeded where there is no room for them."""
        limit, held = self._limits.body_bytes, self._bytes.get(tenant, 0)
        if limit and held + more > limit:
            raise too_heavy(tenant, held, limit)
        self._bytes[tenant] = held + more

    def give_back(self, tenant: str, hold: Hold, size: int) -> None:
        """A place has become free, and so many bytes with it."""
        self._held[tenant, hold] -= 1
        if not self._held[tenant, hold]:
            del self._held[tenant, hold]
        if size:
            self._bytes[tenant] -= size
            if not self._bytes[tenant]:
                del self._bytes[tenant]


class Place:
    """One of them."""

    __slots__ = ("_bytes", "_free", "_hold", "_open", "_tenant")

    def __init__(self, free: OpenRequests, tenant: str, hold: Hold) -> None:
        self._free = free
        self._tenant = tenant
        self._hold = hold
        self._bytes = 0
        self._open = True

    def weigh(self, size: int) -> None:
        """The body has at least so many bytes. Fault quota_exceeded where the tenant has no room for them."""
        if size > self._bytes:
            self._free.weigh(self._tenant, size - self._bytes)
            self._bytes = size

    def release(self) -> None:
        """Give it back; saying so again is harmless."""
        if self._open:
            self._open = False
            self._free.give_back(self._tenant, self._hold, self._bytes)
