"""The present figures of every level."""

from collections.abc import Collection
from dataclasses import dataclass

from libs.telemetry import metrics, names
from services.capacity.domain.leases import Lease
from services.capacity.domain.levels import Subject
from services.capacity.ports import CapacityStore, Figure


@dataclass(frozen=True, slots=True)
class View:
    """Figures in the order of subjects, and live leases where they were asked for."""

    figures: tuple[Figure, ...]
    leases: tuple[Lease, ...]


class GetCapacity:
    """Reads without locks: the figures may be old when they arrive; only a reservation decides."""

    def __init__(self, store: CapacityStore) -> None:
        self._store = store

    async def __call__(self, subjects: Collection[Subject] = (), include_leases: bool = False) -> View:
        """Of these levels as far as they are declared, or of all."""
        wanted = frozenset(subjects)
        figures = tuple(
            figure for figure in await self._store.figures() if not wanted or figure.level.subject in wanted
        )
        for figure in figures:
            labels = {"object_kind": figure.level.subject.kind.name.lower(), "object": figure.level.subject.id}
            metrics.PROCESS.gauge(names.CAPACITY_IN_USE, **labels).set(figure.usage.in_use)
            if figure.level.effective is not None:
                metrics.PROCESS.gauge(names.CAPACITY_EFFECTIVE, **labels).set(figure.level.effective)
        leases = tuple(await self._store.leases()) if include_leases else ()
        return View(figures, leases)
