"""End a key."""

from libs.faults.fault import Fault
from libs.kernel.world import World
from services.edge.app.authenticate import Authenticator
from services.edge.domain.keys import ADMIN_KEY_ID, Key
from services.edge.ports import Keys


async def revoke_key(store: Keys, authenticator: Authenticator, world: World, key_id: str) -> Key:
    """The key, ended. Here at once, on other replicas when their cache lapses. Revoking twice is harmless."""
    if key_id == ADMIN_KEY_ID:
        raise Fault.of("conflict", "the admin key is a setting of the server: change POINTSMAN_ADMIN_KEY instead")
    key = await store.revoke(key_id, world.clock.now())
    if key is None:
        raise Fault.of("not_found", f"key {key_id!r} does not exist")
    authenticator.forget(key_id)
    return key
