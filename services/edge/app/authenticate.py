"""Who is calling: the key in hand becomes a Caller (AUTH-1)."""

import asyncio

from msgspec import Struct

from libs.faults.fault import Fault
from libs.kernel.clock import Clock
from services.edge.domain import keys
from services.edge.domain.keys import ADMIN_KEY_ID, ADMIN_TENANT, ALL_SCOPES, Key, Scope
from services.edge.ports import Keys

MOST_CACHED = 10_000
BEARER = "bearer"


class Caller(Struct, frozen=True):
    """Whoever holds a valid key. `digest` is the key's, for asking again whether it still holds."""

    tenant: str
    scopes: frozenset[Scope]
    key_id: str
    digest: str = ""

    @property
    def operator(self) -> bool:
        """Whether it may look across tenants."""
        return bool(self.scopes & {Scope.OPERATE, Scope.ADMIN})


class Authenticator:
    """Recognises keys. A good answer is kept for `cache_s` seconds, so a revocation holds everywhere soon after.

    Refusals are never kept. Whoever asks for a key that is being looked up waits for that answer. The admin key is a
    setting of this process, not a row: it is known by its digest alone.
    """

    def __init__(self, store: Keys, clock: Clock, cache_s: float) -> None:
        self._store = store
        self._clock = clock
        self._cache_s = cache_s
        self._known: dict[str, tuple[Key, float]] = {}
        self._asked: dict[str, tuple[str, asyncio.Task[Key]]] = {}
        self._admin: Key | None = None
        self._admin_digest = ""

    def admit_admin(self, text: str) -> None:
        """Take this text for the admin key from now on."""
        self._admin_digest = keys.digest(text)
        self._admin = Key(ADMIN_KEY_ID, ADMIN_TENANT, ALL_SCOPES, self._clock.now())

    async def bearer(self, header: str | None) -> Caller:
        """The caller behind an Authorization header. Fault unauthenticated."""
        scheme, _, text = (header or "").partition(" ")
        if scheme.lower() != BEARER or not text.strip():
            raise Fault.of(
                "unauthenticated", "no key was given; send it in the Authorization header, as a Bearer token"
            )
        key, digest = await self.key(text.strip())
        return Caller(key.tenant, key.scopes, key.id, digest)

    async def key(self, text: str) -> tuple[Key, str]:
        """(the key of that text, its digest). Fault unauthenticated."""
        digest = keys.digest(text)
        if self._admin is not None and keys.same(digest, self._admin_digest):
            return self._admin, digest
        return await self._recognise(keys.id_in(text), digest), digest

    async def still(self, caller: Caller) -> bool:
        """Whether the caller's key still holds; a store that does not answer ends nobody's work."""
        if caller.key_id == ADMIN_KEY_ID:
            return keys.same(caller.digest, self._admin_digest)
        try:
            await self._recognise(caller.key_id, caller.digest)
        except Fault as fault:
            return fault.code != "unauthenticated"
        return True

    async def _recognise(self, key_id: str | None, digest: str) -> Key:
        now_s = self._clock.monotonic()
        key, until_s = self._known.get(digest, (None, now_s))
        if key is None or until_s <= now_s:
            key = await self._learn(key_id or "", digest, now_s + self._cache_s)
        keys.check_standing(key, self._clock.now())
        return key

    async def _learn(self, key_id: str, digest: str, until_s: float) -> Key:
        """One look-up for all that ask at once; who leaves meanwhile does not take it from the others."""
        asked = self._asked.get(digest)
        if asked is None:
            asked = self._asked[digest] = key_id, asyncio.create_task(self._look_up(key_id, digest), name="key")
            asked[1].add_done_callback(lambda ended: self._answered(digest, ended, until_s))
        return await asyncio.shield(asked[1])

    def _answered(self, digest: str, ended: "asyncio.Task[Key]", until_s: float) -> None:
        asked = self._asked.get(digest)
        if asked is None or asked[1] is not ended:  # the key was forgotten meanwhile
            return
        del self._asked[digest]
        if ended.cancelled() or ended.exception() is not None:
            return
        if len(self._known) >= MOST_CACHED:
            self._known.clear()
        self._known[digest] = (ended.result(), until_s)

    def forget(self, key_id: str) -> None:
        """A key was revoked here: do not wait for the cache, nor for what the store is being asked."""
        self._asked = {digest: asked for digest, asked in self._asked.items() if asked[0] != key_id}
        self._known = {digest: known for digest, known in self._known.items() if known[0].id != key_id}

    async def _look_up(self, key_id: str, digest: str) -> Key:
        kept = await self._store.find(key_id) if key_id else None
        return keys.recognised(kept, digest, self._clock.now())
