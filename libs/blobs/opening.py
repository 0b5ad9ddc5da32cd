"""Which store of blobs, by one address: a directory, or `s3://bucket/prefix`."""

from collections.abc import Mapping
from pathlib import Path

from obstore.store import S3Store

from libs.blobs.blob import Blobs
from libs.blobs.bucket import BucketBlobs
from libs.blobs.local import LocalBlobs

SETTING = "POINTSMAN_BLOBS"
DATA_SETTING = "POINTSMAN_DATA"
DEFAULT_DATA = "./.pointsman"


def open_blobs(address: str) -> Blobs:
    """The store at a directory path or an `s3://` address (endpoint and credentials from `AWS_*` variables)."""
    if address.startswith("s3://"):
        return BucketBlobs(S3Store.from_url(address))
    if "://" in address:
        raise ValueError(f"{address!r} is no address of blobs; say a directory or s3://bucket/prefix")
    return LocalBlobs(Path(address))


def blobs_address(environment: Mapping[str, str]) -> str:
    """POINTSMAN_BLOBS, or the folder `blobs` of the data directory."""
    return environment.get(SETTING) or str(Path(environment.get(DATA_SETTING) or DEFAULT_DATA) / "blobs")
