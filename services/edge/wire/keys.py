"""Keys, over gRPC and as callers see them."""

from libs.rpc.values import time_to_proto
from pointsman.edge.v1 import key_pb2
from services.edge.domain.keys import Key


def key_to_proto(key: Key) -> key_pb2.Key:
    """A key on record; never its secret."""
    return key_pb2.Key(
        id=key.id,
        tenant=key.tenant,
        scopes=sorted(key.scopes),
        create_time=time_to_proto(key.created_at),
        expire_time=time_to_proto(key.expires_at),
        revoke_time=time_to_proto(key.revoked_at),
        former_expire_time=time_to_proto(key.former_until),
    )
