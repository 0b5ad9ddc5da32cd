"""Verifications on record, and what they need of media."""

from collections.abc import Mapping
from typing import Protocol

from libs.materials.limits import Measures
from services.routing.domain.verification import Verification


class VerificationStore(Protocol):
    """Verifications. Laws: one that has ended never changes; an id is one verification for ever."""

    async def add(self, verification: Verification) -> Verification:
        """Keep it; answers the one that stands under its id."""
        ...

    async def get(self, verification_id: str) -> Verification | None:
        """It, or None."""
        ...

    async def settle(self, verification: Verification) -> Verification:
        """Keep the end of a running one; answers how it ended, which is another's word if that came first."""
        ...

    async def newest(self) -> Mapping[str, Verification]:
        """By Supply: the one that ended last."""
        ...


class Specimens(Protocol):
    """The media that a set sends, and the measure of those that come back."""

    async def picture(self, words: str = "") -> str:
        """The digest of a plain picture that is kept as an artifact; with `words`, of a sign that says them."""
        ...

    async def measures(self, sha256: str) -> Measures | str:
        """What a kept file is; or, for one that cannot be read as media, why."""
        ...
