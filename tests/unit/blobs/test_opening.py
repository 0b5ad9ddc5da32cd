"""Which store an address means."""

from pathlib import Path

import pytest

from libs.blobs.bucket import BucketBlobs
from libs.blobs.local import LocalBlobs
from libs.blobs.opening import blobs_address, open_blobs


def test_addresses(tmp_path: Path) -> None:
    """OPS-2: a local directory by default, an S3-compatible bucket by setting."""
    assert isinstance(open_blobs(str(tmp_path)), LocalBlobs)
    assert isinstance(open_blobs("s3://bucket/prefix"), BucketBlobs)
    with pytest.raises(ValueError, match="address of blobs"):
        open_blobs("ftp://host/x")


def test_the_default_lies_in_the_data_directory() -> None:
    """OPS-2: without a setting, blobs are in the data directory."""
    assert blobs_address({}) == ".pointsman/blobs"
    assert blobs_address({"POINTSMAN_DATA": "/d"}) == "/d/blobs"
    assert blobs_address({"POINTSMAN_DATA": "/d", "POINTSMAN_BLOBS": "s3://b"}) == "s3://b"
