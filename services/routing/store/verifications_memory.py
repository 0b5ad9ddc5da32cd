"""Verifications in memory: the twin of `verifications_postgres`."""

from collections.abc import Mapping

from services.routing.domain.verification import Verification, VerificationState


class MemoryVerifications:
    """Implements `ports.VerificationStore`."""

    def __init__(self) -> None:
        self._rows: dict[str, Verification] = {}

    async def add(self, verification: Verification) -> Verification:
        """See the port."""
        return self._rows.setdefault(verification.id, verification)

    async def get(self, verification_id: str) -> Verification | None:
        """See the port."""
        return self._rows.get(verification_id)

    async def settle(self, verification: Verification) -> Verification:
        """See the port."""
        if self._rows[verification.id].state is VerificationState.RUNNING:
            self._rows[verification.id] = verification
        return self._rows[verification.id]

    async def newest(self) -> Mapping[str, Verification]:
        """See the port."""
        ended = [(row.finished_at, row.id, row) for row in self._rows.values() if row.finished_at is not None]
        return {row.supply: row for _, _, row in sorted(ended, key=lambda entry: entry[:2])}
