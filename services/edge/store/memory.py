"""Keys and owners in memory: the same contract, gone with the process."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from libs.faults.fault import Fault
from services.edge.domain.keys import Key


class MemoryKeys:
    """Implements `ports.Keys`."""

    def __init__(self) -> None:
        self._keys: dict[str, tuple[Key, str]] = {}

    async def add(self, key: Key, digest: str) -> None:
        """See the port."""
        if key.id in self._keys:
            raise Fault.of("conflict", f"key {key.id} exists")
        self._keys[key.id] = (key, digest)

    async def find(self, key_id: str) -> tuple[Key, str] | None:
        """See the port."""
        return self._keys.get(key_id)

    async def page(self, tenant: str, before: str, size: int) -> list[Key]:
        """See the port."""
        found = (self._keys[key_id][0] for key_id in sorted(self._keys, reverse=True) if not before or key_id < before)
        return [key for key in found if not tenant or key.tenant == tenant][:size]

    async def revoke(self, key_id: str, now: datetime) -> Key | None:
        """See the port."""
        found = self._keys.get(key_id)
        if found is None:
            return None
        ended = replace(found[0], revoked_at=found[0].revoked_at or now)
        self._keys[key_id] = (ended, found[1])
        return ended


class MemoryOwners:
    """Implements `ports.Owners`."""

    def __init__(self) -> None:
        self._owned: set[tuple[str, str]] = set()

    async def add(self, tenant: str, digests: Iterable[str], now: datetime) -> None:
        """See the port."""
        self._owned.update((tenant, digest) for digest in digests)

    async def owns(self, tenant: str, digest: str) -> bool:
        """See the port."""
        return (tenant, digest) in self._owned

    async def ping(self) -> None:
        """See the port."""


class MemoryCounts:
    """Implements `ports.RequestCounts`."""

    def __init__(self) -> None:
        self._counts: dict[tuple[int, str, str], int] = {}

    async def exchange(self, replica: str, minute: int, requests: Mapping[str, int]) -> Mapping[str, int]:
        """See the port."""
        self._counts = {key: count for key, count in self._counts.items() if key[0] >= minute - 1}
        self._counts |= {(minute, tenant, replica): count for tenant, count in requests.items()}
        others: Counter[str] = Counter()
        for (at, tenant, whose), count in self._counts.items():
            if at == minute and whose != replica:
                others[tenant] += count
        return others
