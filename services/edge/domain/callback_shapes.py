"""The public JSON shapes of callbacks."""

from datetime import datetime

from msgspec import Struct


class Callback(Struct, frozen=True):
    """One message about the end of a Run. `id` is its `webhook-id`; `state`: pending, delivered or given_up."""

    id: str
    type: str
    url: str
    state: str
    attempts: int
    last_error: str | None
    created_at: datetime | None
    next_at: datetime | None
    finished_at: datetime | None


class CallbackList(Struct, frozen=True):
    """The messages about one Run, newest first."""

    callbacks: list[Callback]


class NewWebhookSecret(Struct, frozen=True):
    """The secret that signs a tenant's callbacks from now on, shown this once."""

    tenant: str
    secret: str
