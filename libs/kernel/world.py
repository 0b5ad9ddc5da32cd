"""What a context may ask of the world around it."""

from dataclasses import dataclass

from libs.kernel.clock import Clock
from libs.kernel.ids import Ids
from libs.kernel.rng import Rng


@dataclass(frozen=True, slots=True)
class World:
    """The three sources of everything that is not decided by inputs."""

    clock: Clock
    ids: Ids
    rng: Rng
