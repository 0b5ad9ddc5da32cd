"""Make a key; its text is shown this once."""

from datetime import datetime

from libs.faults.fault import Fault
from libs.kernel.world import World
from services.edge.domain import keys
from services.edge.domain.keys import Key
from services.edge.ports import Keys, Random


async def create_key(
    store: Keys, world: World, random: Random, tenant: str, scopes: list[str], expires_at: datetime | None
) -> tuple[Key, str]:
    """(the key on record, its text). Fault validation_failed for a tenant, scope or time that cannot be."""
    keys.check_tenant(tenant)
    granted = keys.scopes_from(scopes)
    now = world.clock.now()
    if expires_at is not None and expires_at <= now:
        raise Fault.invalid(("/expires_at", "must lie in the future"))
    key = Key(world.ids.ulid(), tenant, granted, now, expires_at)
    text = keys.spell(key.id, random(keys.SECRET_BYTES))
    await store.add(key, keys.digest(text))
    return key, text
