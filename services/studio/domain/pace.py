"""When each token of an answer is due."""

from __future__ import annotations

from dataclasses import dataclass

from services.studio.domain.accounts import Account
from services.studio.domain.script import NEVER, Flow


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds to the first token, between tokens, and once after `stall_after` of them."""

    first_s: float = 0.0
    gap_s: float = 0.0
    stall_after: int = NEVER
    stall_s: float = 0.0

    def due(self, tokens: int) -> float:
        """Seconds from the beginning until so many tokens may have been said; the first wait is before all."""
        stalled = self.stall_s if self.stall_after != NEVER and tokens > self.stall_after else 0.0
        return self.first_s + max(0, tokens - 1) * self.gap_s + stalled

    def said(self, elapsed_s: float, total: int) -> int:
        """How many of `total` tokens are made after so many seconds."""
        return next((count for count in range(total, 0, -1) if self.due(count) <= elapsed_s), 0)


def pace_of(account: Account, flow: Flow, thought: int = 0) -> Pace:
    """The account's pace as the script leaves it; tokens that are `thought` first delay the first one that is said."""
    gap = 1 / (account.tokens_per_s * account.speed) if account.tokens_per_s > 0 else 0.0
    if flow.token_gap_s is not None:
        gap = flow.token_gap_s
    first = account.first_token_s / account.speed if flow.first_token_s is None else flow.first_token_s
    return Pace(first + thought * gap, gap, flow.stall_after, flow.stall_s)
