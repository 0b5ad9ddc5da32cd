"""What a breaker counts between two moves: streaks, the window of outcomes, failures heard of its Supplies."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from services.health.domain.observations import Failure, Family, SupplyFailure
from services.health.domain.statistics import Slot, recorded
from services.health.domain.thresholds import Thresholds


@dataclass(frozen=True, slots=True)
class Sighting:
    """A Supply of this Channel failed with this code, last at this time."""

    supply_id: str
    code: str
    at: datetime


class Tally(Struct, frozen=True):
    """Counts since the present phase began.

    `successes` and `failures` are in a row; `family_failures` counts those of `family` without another family's
    failure between. `window` holds outcomes for the rates.
    """

    successes: int = 0
    failures: int = 0
    family: Family | None = None
    family_failures: int = 0
    window: tuple[Slot, ...] = ()
    sightings: tuple[Sighting, ...] = ()

    def succeeded(self, at: datetime, thresholds: Thresholds) -> "Tally":
        """With one more success."""
        window = recorded(self.window, at, True, thresholds.window_s)
        return Tally(self.successes + 1, 0, None, 0, window, self.sightings)  # the most frequent step there is

    def failed(self, failure: Failure, at: datetime, thresholds: Thresholds) -> "Tally":
        """With one more failure."""
        return replace(
            self,
            successes=0,
            failures=self.failures + 1,
            family=failure.family,
            family_failures=self.family_failures + 1 if failure.family is self.family else 1,
            window=recorded(self.window, at, False, thresholds.window_s),
        )

    def heard(self, news: SupplyFailure, at: datetime, thresholds: Thresholds) -> "Tally":
        """With one more failure of a Supply, and without those that are too old to count beside it."""
        oldest = max([at, *(sighting.at for sighting in self.sightings)]) - timedelta(
            seconds=thresholds.escalation_window_s
        )
        latest = {(sighting.supply_id, sighting.code): sighting for sighting in self.sightings}
        known = latest.get((news.supply_id, news.code))
        if known is None or known.at < at:
            latest[news.supply_id, news.code] = Sighting(news.supply_id, news.code, at)
        return replace(self, sightings=tuple(latest[key] for key in sorted(latest) if latest[key].at >= oldest))

    def supplies_with(self, code: str) -> int:
        """Supplies that failed with this code within the escalation window."""
        return len({sighting.supply_id for sighting in self.sightings if sighting.code == code})


EMPTY = Tally()
