"""The catalogue says which levels there are; health says what it allows them."""

from collections.abc import Mapping, Sequence

from libs.faults.fault import Fault
from services.capacity.app.freed import Freed
from services.capacity.domain.levels import HealthLimit, Kind, Level, Subject
from services.capacity.ports import CapacityStore


class ApplyLimits:
    """Declarative by catalogue revision: told again it changes nothing, the absent are retired.

    Revision 0 tells no levels, only health. Of health the newest revision of a level is kept, however it arrives.
    """

    def __init__(self, store: CapacityStore, freed: Freed) -> None:
        self._store = store
        self._freed = freed

    async def __call__(self, revision: int, levels: Sequence[Level], health: Mapping[Subject, HealthLimit]) -> int:
        """The catalogue revision in force. Fault `validation_failed` names what cannot be."""
        _check(revision, levels)
        if revision:
            in_force = await self._store.apply_levels(revision, levels)
        else:
            in_force = await self._store.catalog_revision()
        if health:
            await self._store.hear(health)
        self._freed.tell({level.subject for level in levels} | health.keys())
        return in_force


def _check(revision: int, levels: Sequence[Level]) -> None:
    if revision < 0:
        raise Fault.invalid(("/catalog_revision", "must not be negative"))
    if levels and not revision:
        raise Fault.invalid(("/catalog_revision", "is required with limits"))
    channels = {level.subject.id for level in levels if level.subject.kind is Kind.CHANNEL}
    seen: set[Subject] = set()
    for index, level in enumerate(levels):
        at = f"/limits/{index}"
        if level.subject in seen:
            raise Fault.invalid((f"{at}/subject", f"{level.subject} is declared twice"))
        seen.add(level.subject)
        for name in ("concurrency", "requests_per_minute", "tokens_per_minute"):
            if getattr(level, name) < 0:
                raise Fault.invalid((f"{at}/{name}", "must not be negative"))
        if level.subject.kind is Kind.SUPPLY and level.channel_id not in channels:
            raise Fault.invalid((f"{at}/channel_id", f"no channel '{level.channel_id}' is declared"))
