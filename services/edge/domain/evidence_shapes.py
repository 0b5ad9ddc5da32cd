"""What a supply's regression set has shown, as operators are told."""

from datetime import datetime

from msgspec import Struct

from services.edge.domain.shapes import Amount


class VerificationCase(Struct, frozen=True):
    """One request of the set, carried by a task or a call: `running`, `passed` or `failed`, with what it lacks."""

    name: str
    task_id: str | None
    call_id: str | None
    status: str
    reasons: list[str]
    cost: Amount | None


class Verification(Struct, frozen=True):
    """A run of a supply's regression set. Once passed it is evidence, while the capability version stays."""

    id: str
    supply: str
    upstream_model: str
    capability_version: int
    status: str
    cases: list[VerificationCase]
    cost: Amount | None
    started_at: datetime | None
    finished_at: datetime | None
