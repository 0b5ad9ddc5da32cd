"""End a key."""

from libs.faults.fault import Fault
from libs.kernel.world import World
from services.edge.app.authenticate import Authenticator
from services.edge.domain import keys
from services.edge.domain.keys import Key
from services.edge.ports import Keys


async def revoke_key(store: Keys, authenticator: Authenticator, world: World, key_id: str) -> Key:
    """The key, ended. Here at once, on other replicas when their cache lapses. Revoking twice is harmless."""
    keys.check_kept(key_id)
    key = await store.revoke(key_id, world.clock.now())
    if key is None:
        raise Fault.of("not_found", f"key {key_id!r} does not exist")
    authenticator.forget(key_id)
    return key
