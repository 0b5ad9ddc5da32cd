"""Stored outputs, between proto and domain."""

from google.protobuf.duration_pb2 import Duration

from pointsman.common.v1 import artifact_pb2
from services.routing.domain.task import Artifact


def artifact_to_proto(item: Artifact) -> artifact_pb2.Artifact:
    """One output with what is known of its measures."""
    nanos = round(item.duration_s * 1e9)
    return artifact_pb2.Artifact(
        sha256=item.sha256,
        media_type=item.media_type,
        size_bytes=item.size_bytes,
        width=item.width,
        height=item.height,
        duration=Duration(seconds=nanos // 10**9, nanos=nanos % 10**9) if nanos else None,
    )


def artifact_from_proto(item: artifact_pb2.Artifact) -> Artifact:
    """The inverse."""
    seconds = item.duration.seconds + item.duration.nanos / 1e9
    return Artifact(item.sha256, item.media_type, item.size_bytes, item.width, item.height, seconds)
