"""An artifact to those who may read it."""

from libs.blobs.blob import Blob, Blobs, missing
from services.edge.app.authenticate import Caller
from services.edge.app.reveal import Reveal
from services.edge.domain.orders import DIGEST


async def find_artifact(blobs: Blobs, reveal: Reveal, caller: Caller, digest: str) -> Blob:
    """The facts about it. Another tenant's is not found, in the same words as one that does not exist."""
    if not DIGEST.fullmatch(digest) or not await reveal.may_read(caller, digest):
        raise missing(digest)
    return await blobs.stat(digest)
