"""The public shapes of API keys; the laws of `shapes` hold."""

from datetime import datetime

from msgspec import Struct


class NewKey(Struct, frozen=True):
    """A new key: the only time that it is shown."""

    id: str
    key: str


class KeyRecord(Struct, frozen=True):
    """A key on record; never its secret."""

    id: str
    tenant: str
    scopes: list[str]
    created_at: datetime | None
    expires_at: datetime | None
    revoked_at: datetime | None
    former_until: datetime | None = None


class KeyList(Struct, frozen=True):
    """Keys, newest first."""

    keys: list[KeyRecord]
    next_page_token: str
