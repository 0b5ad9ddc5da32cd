"""Give a key a new secret; its id, tenant, scopes and end stay."""

from datetime import timedelta

from libs.faults.fault import Fault
from libs.kernel.world import World
from services.edge.app.authenticate import Authenticator
from services.edge.domain import keys
from services.edge.domain.keys import Key
from services.edge.ports import Keys, Random


async def rotate_key(
    store: Keys, authenticator: Authenticator, world: World, random: Random, key_id: str, grace_s: float
) -> tuple[Key, str]:
    """(the key, its new text, shown this once). The old text holds for `grace_s` seconds more, 0 = it ends now.

    Here at once, on other replicas when their cache lapses. Only one former text lives: a second rotation ends the
    first one's. Faults: not_found, conflict for a key that has ended.
    """
    keys.check_kept(key_id)
    if not 0 <= grace_s <= keys.LONGEST_GRACE_S:
        raise Fault.invalid(("/grace_s", f"must be a number of seconds between 0 and {keys.LONGEST_GRACE_S}"))
    now = world.clock.now()
    text = keys.spell(key_id, random(keys.SECRET_BYTES))
    key = await store.rotate(key_id, keys.digest(text), now, now + timedelta(seconds=grace_s))
    if key is None:
        kept = await store.find(key_id)
        if kept is None:
            raise Fault.of("not_found", f"key {key_id!r} does not exist")
        raise Fault.of("conflict", f"key {key_id} has ended; make a new one")
    authenticator.forget(key_id)
    return key, text
