"""Opens a channel to an address. The one place that knows gRPC's channel arguments."""

import json
from typing import Any

from grpc import aio

from libs.rpc.address import Address, Transport
from libs.rpc.limits import ANSWER_LIMIT_BYTES, MESSAGE_LIMIT_BYTES, METADATA_OPTIONS
from libs.rpc.loopback import PROCESS, LoopbackChannel, LoopbackRegistry
from libs.rpc.tls import RenewingChannel, Tls

KEEPALIVE_TIME_MS = 30_000
KEEPALIVE_TIMEOUT_MS = 10_000


def channel_options(
    message_limit_bytes: int = MESSAGE_LIMIT_BYTES, answer_limit_bytes: int = ANSWER_LIMIT_BYTES
) -> list[tuple[str, Any]]:
    """The arguments of every client connection."""
    return [
        ("grpc.max_send_message_length", message_limit_bytes),
        ("grpc.max_receive_message_length", answer_limit_bytes),
        *METADATA_OPTIONS,
        # Also stops gRPC's transparent retries: whether to send again is for the caller, who knows what was sent.
        ("grpc.enable_retries", 0),
        ("grpc.keepalive_time_ms", KEEPALIVE_TIME_MS),
        ("grpc.keepalive_timeout_ms", KEEPALIVE_TIMEOUT_MS),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.initial_reconnect_backoff_ms", 200),
        # A peer that is back is found again within a second or so, as everything else here looks again within one.
        ("grpc.max_reconnect_backoff_ms", 1_000),
        # How calls are sent is said here alone: nobody's DNS may add a policy of retries.
        ("grpc.service_config_disable_resolution", 1),
        # gRPC shares connections between equal channels; contexts of one process keep their own.
        ("grpc.use_local_subchannel_pool", 1),
    ]


def spreading(address: Address) -> tuple[str, str]:
    """The argument that spreads calls: each goes to the next server that is connected and says that it serves.

    Where there is only one it is asked for no health: it is called whatever it says, since there is nobody else.
    """
    config: dict[str, Any] = {"loadBalancingConfig": [{"round_robin": {}}]}
    if address.may_be_several:
        config["healthCheckConfig"] = {"serviceName": ""}
    return "grpc.service_config", json.dumps(config)


def open_channel(
    address: Address,
    registry: LoopbackRegistry = PROCESS,
    tls: Tls | None = None,
    context: str = "",
    message_limit_bytes: int = MESSAGE_LIMIT_BYTES,
    answer_limit_bytes: int = ANSWER_LIMIT_BYTES,
) -> aio.Channel:
    """A channel to `address`; call on the event loop that will use it. Nothing is connected before the first call.

    `tls` makes it mutual TLS over TCP, to a server whose certificate is for `context`; without it the connection is
    plain. A Unix socket always is: whoever may open it could read our key as well.
    """
    if address.transport is Transport.LOOPBACK:
        return LoopbackChannel(registry, message_limit_bytes, answer_limit_bytes)
    options = [*channel_options(message_limit_bytes, answer_limit_bytes), spreading(address)]
    if address.transport is Transport.UNIX:
        # Some peers reject a path as the name of an authority; the socket file is the authority.
        options.append(("grpc.default_authority", "localhost"))
    elif tls is not None:
        options.append(("grpc.ssl_target_name_override", tls.server_name(context)))
        return RenewingChannel(tls, lambda: aio.secure_channel(address.target, tls.channel_credentials(), options))
    return aio.insecure_channel(address.target, options)
