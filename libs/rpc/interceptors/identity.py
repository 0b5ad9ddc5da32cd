"""The caller of an incoming call becomes the identity of the task that serves it."""

from libs.rpc.identity import AUTHORIZATION, CALLER, REQUEST_ID, TENANT, Identity, Secret, carry_identity
from libs.rpc.interceptors.incoming import IncomingCall


class IdentityInterceptor:
    """Reads who calls. It believes what it reads: proving it is the business of `admit` and of mutual TLS."""

    def opened(self, call: IncomingCall) -> None:
        """Put the caller's identity into the task."""
        metadata = call.metadata
        authorization = metadata.get(AUTHORIZATION)
        carry_identity(
            Identity(
                metadata.get(CALLER, ""),
                metadata.get(REQUEST_ID, ""),
                metadata.get(TENANT, ""),
                Secret(authorization) if authorization else None,
            )
        )

    def closed(self, call: IncomingCall) -> None:
        """Nothing: the identity dies with the task."""
