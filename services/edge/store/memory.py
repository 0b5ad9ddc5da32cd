"""Keys and owners in memory: the same contract, gone with the process."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from libs.faults.fault import Fault
from services.edge.domain.keys import Kept, Key


class MemoryKeys:
    """Implements `ports.Keys`."""

    def __init__(self) -> None:
        self._keys: dict[str, Kept] = {}

    async def add(self, key: Key, digest: str) -> None:
        """See the port."""
        if key.id in self._keys:
            raise Fault.of("conflict", f"key {key.id} exists")
        self._keys[key.id] = Kept(key, digest)

    async def find(self, key_id: str) -> Kept | None:
        """See the port."""
        return self._keys.get(key_id)

    async def page(self, tenant: str, before: str, size: int) -> list[Key]:
        """See the port."""
        found = (self._keys[key_id].key for key_id in sorted(self._keys, reverse=True) if not before or key_id < before)
        return [key for key in found if not tenant or key.tenant == tenant][:size]

    async def revoke(self, key_id: str, now: datetime) -> Key | None:
        """See the port."""
        kept = self._keys.get(key_id)
        if kept is None:
            return None
        ended = replace(kept.key, revoked_at=kept.key.revoked_at or now)
        self._keys[key_id] = replace(kept, key=ended)
        return ended

    async def rotate(self, key_id: str, digest: str, now: datetime, former_until: datetime) -> Key | None:
        """See the port."""
        kept = self._keys.get(key_id)
        if kept is None or kept.key.revoked_at or (kept.key.expires_at and kept.key.expires_at <= now):
            return None
        rotated = replace(kept.key, former_until=former_until)
        self._keys[key_id] = Kept(rotated, digest, kept.digest)
        return rotated


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
