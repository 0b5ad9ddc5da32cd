"""When a circuit opens, degrades and may be probed: every figure of HLT-8 and HLT-9, with its default."""

from dataclasses import dataclass, fields
from typing import Self


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The figures in force for a Channel and its Supplies. Times in seconds, rates 0..1, counts of outcomes."""

    cooldown_s: float = 60.0
    account_cooldown_s: float = 300.0
    connect_failures: int = 2
    consecutive_failures: int = 3
    capacity_failures: int = 5
    capacity_cooldown_s: float = 30.0
    escalation_supplies: int = 2
    escalation_window_s: float = 60.0
    failure_rate: float = 0.5
    failure_rate_min: int = 20
    window_s: float = 60.0
    degraded_rate: float = 0.2
    degraded_failures: int = 2
    degraded_successes: int = 5

    @classmethod
    def of(cls, **overrides: float | int | None) -> Self:
        """Defaults with `overrides`; None means not said.

        `cooldown_s` holds for every trigger, so where it is said it also replaces the defaults of
        `account_cooldown_s` and `capacity_cooldown_s`, unless they are said themselves. ValueError for a figure
        that cannot work (a negative time, a count below 1, a rate outside 0..1).
        """
        said = {name: value for name, value in overrides.items() if value is not None}
        if "cooldown_s" in said:
            said.setdefault("account_cooldown_s", said["cooldown_s"])
            said.setdefault("capacity_cooldown_s", said["cooldown_s"])
        made = cls(**said)  # type: ignore[arg-type] # names are checked by the constructor, values by the next line
        made.check()
        return made

    @property
    def eased_rate(self) -> float:
        """Below this failure rate a degraded subject may return: half of the rate that degrades (20 % -> 10 %)."""
        return self.degraded_rate / 2

    def check(self) -> None:
        """ValueError naming the first figure that cannot work."""
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name.endswith("_rate"):
                if not 0 <= value <= 1:
                    raise ValueError(f"{field.name} must lie between 0 and 1, not {value}")
            elif field.name.endswith("_s"):
                if not 0 <= value < float("inf") or (field.name == "window_s" and value == 0):
                    raise ValueError(f"{field.name} must be a time in seconds, not {value}")
            elif value < 1:
                raise ValueError(f"{field.name} must be at least 1, not {value}")
