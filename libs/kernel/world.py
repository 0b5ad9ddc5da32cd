"""What a context may ask of the world around it."""

from dataclasses import dataclass
from datetime import datetime

from libs.kernel.clock import Clock
from libs.kernel.ids import Ids
from libs.kernel.rng import Rng


@dataclass(frozen=True, slots=True)
class World:
    """The three sources of everything that is not decided by inputs.

    `clock` is what all processes of an installation agree on; `wall` the machine's own, None where that is the same.
    """

    clock: Clock
    ids: Ids
    rng: Rng
    wall: Clock | None = None

    def outside(self) -> datetime:
        """The time for others, who compare it with their own: what is signed and sent bears it."""
        return (self.wall or self.clock).now()
