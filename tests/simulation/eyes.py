"""Who looks at what was made: most films are as they should be, one in ten is too small."""

from collections.abc import Collection

from services.runs.domain.judging import Facts
from services.runs.domain.run import Artifact
from tests.simulation.offers import SECONDS

SMALL = 26
"""Of 256 first bytes of a digest, those that mean a small film: the same film always looks the same."""


class Eyes:
    """Implements `ports.Examiner` of runs."""

    async def examine(self, tenant: str, artifact: Artifact, readers: Collection[str] = ()) -> Facts:
        """See the port."""
        height = 90 if int(artifact.sha256[:2], 16) < SMALL else 360
        return Facts(
            artifact.sha256, artifact.media_type, 100, width=height * 16 // 9, height=height, duration_s=float(SECONDS)
        )
