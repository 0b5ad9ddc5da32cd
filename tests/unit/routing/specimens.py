"""Media of regression sets in words: what the files of results measure."""

from dataclasses import dataclass, field

from libs.materials.limits import Measures
from tests.unit.routing.dispatch_fakes import FILM

PICTURE = "c" * 64
CLIP = Measures("video/mp4", 1000, 1280, 720, 1.0)


@dataclass
class FakeSpecimens:
    """Implements `ports.Specimens`."""

    files: dict[str, Measures | str] = field(default_factory=lambda: {FILM.sha256: CLIP})
    pictures: int = 0

    async def picture(self, words: str = "") -> str:
        """See the port."""
        self.pictures += 1
        return PICTURE

    async def measures(self, sha256: str) -> Measures | str:
        """See the port."""
        return self.files[sha256]
