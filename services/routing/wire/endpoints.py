"""How a provider's account is reached, as provider_adapter is told with every call."""

from functools import lru_cache

from libs.rpc.values import seconds_to_proto
from pointsman.provider_adapter.v1 import provider_pb2
from services.routing.domain.catalog import Channel, Timeouts


def endpoint(channel: Channel) -> provider_pb2.ChannelEndpoint:
    """How the account is reached."""
    return provider_pb2.ChannelEndpoint(
        channel_id=channel.id,
        adapter=channel.adapter,
        base_url=channel.base_url,
        secret_ref=channel.secret,
        timeouts=_timeouts(channel.timeouts),
        reconcile_by=str(channel.reconcile_by),
    )


@lru_cache(maxsize=256)
def _timeouts(told: Timeouts) -> provider_pb2.Timeouts:
    """Only to be copied: every call has the limits of its Channel."""
    return provider_pb2.Timeouts(
        connect=seconds_to_proto(told.connect_s),
        submit=seconds_to_proto(told.submit_s),
        poll=seconds_to_proto(told.poll_s),
    )
