"""A request in Pointsman's own words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Terms:
    """What is laid down by whoever hands a Task over for somebody: an operator's word, a production's plan."""

    supply: str = ""
    """Only this Supply may serve it (HUMAN-2, GATE-6); empty = as the policy chooses."""
    max_attempts: int = 0
    """At most this many Attempts; 0 = as the policy says, which it never exceeds."""
    hold: str = ""
    """The Hold that pays for it, for records; empty = none."""
    stage: int = 0
    """The place of its stage in the production, 0 = the first or none (PRIO-1)."""
    blocking: int = 0
    """How many others wait for it (PRIO-1)."""
    blocks_release: bool = False
    """A release waits for it (PRIO-1)."""


NO_TERMS = Terms()


@dataclass(frozen=True, slots=True)
class Request:
    """What a caller asks of a Public Model.

    `input` holds JSON values as in the public contract (materials are `{"url"}` or `{"artifact"}`); `billing_mode`
    and `degradation` are empty where the caller said nothing.
    """

    tenant: str
    model: str
    input: Mapping[str, Any]
    degradation: str = ""
    billing_mode: str = ""
    priority: str = "normal"
    deadline: datetime | None = field(default=None)
    terms: Terms | None = None
    """None = none: every record of a decision tells them, and a plain request has nothing to tell."""

    def with_input(self, given: Mapping[str, Any]) -> "Request":
        """The same with another input. (`replace` walks over the fields by name, which a call is too short for.)"""
        return Request(
            self.tenant,
            self.model,
            given,
            self.degradation,
            self.billing_mode,
            self.priority,
            self.deadline,
            self.terms,
        )

    @property
    def only_supply(self) -> str:
        """The one Supply that may serve it; empty = every bound one may."""
        return self.terms.supply if self.terms else ""

    def attempts_within(self, most: int) -> int:
        """Attempts that are permitted where the policy permits `most`."""
        return min(most, self.terms.max_attempts) if self.terms and self.terms.max_attempts else most
