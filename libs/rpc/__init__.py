"""The one kind of door between contexts: a generated gRPC stub on a channel.

Owns addresses, the three channels (loopback, Unix socket, TCP), the server that hosts servicers on any of them, one
set of interceptors for all, health, reflection, channelz, drain, and the step from `AioRpcError` to `Fault`.
Refuses to know any message or context: what it carries are bytes and metadata. Never imports a service.
"""
