"""Keys as values, and the time that a remembered answer lives."""

import asyncio
import os
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.faults.fault import Fault
from services.edge.app.authenticate import Authenticator
from services.edge.domain import keys
from services.edge.domain.json_values import NAMED_ERRORS
from services.edge.domain.keys import ALL_SCOPES, Key, Scope
from services.edge.store.memory import MemoryKeys
from tests.support.worlds import START, SteeredClock


@given(st.binary(min_size=32, max_size=32))
def test_a_key_names_its_id(random: bytes) -> None:
    """AUTH-1: the id is read from any key, also where the secret holds an underscore."""
    text = keys.spell("01ABC", random)
    assert keys.id_in(text) == "01ABC"
    assert text.isascii()
    assert len(text) >= 43 + 9


@pytest.mark.parametrize(
    "text", ["", "pm", "pm_", "pm_x", "pm__secret", "sk_x_y", "pm_x_é", "pm_x_" + "a" * 600, "pm_\0_x", "pm_-_x"]
)
def test_what_is_no_key(text: str) -> None:
    """AUTH-1: what cannot be a key of ours is not looked up at all."""
    assert keys.id_in(text) is None


def test_only_the_digest_tells() -> None:
    """AUTH-1: what is kept holds nothing of the key."""
    text = keys.spell("01ABC", os.urandom(32))
    digest = keys.digest(text)
    assert (len(digest), text[9:20] in digest) == (64, False)
    assert keys.same(digest, keys.digest(text))
    assert not keys.same(digest, keys.digest(text + "x"))


def test_standing_and_scope() -> None:
    """AUTH-1: an ended key is unauthenticated, a missing scope forbidden; a scope is never implied by another."""
    key = Key("k", "t", frozenset({Scope.ADMIN}), START, START + timedelta(seconds=1))
    keys.check_standing(key, START)
    for ended, now in ((replace(key, revoked_at=START), START), (key, START + timedelta(seconds=1))):
        with pytest.raises(Fault) as caught:
            keys.check_standing(ended, now)
        assert caught.value.code == "unauthenticated"
    with pytest.raises(Fault) as caught:
        keys.check_scope(key.scopes, frozenset({Scope.RUNS, Scope.INVOKE}))
    assert (caught.value.code, "'invoke' or 'runs'" in caught.value.message) == ("forbidden", True)
    keys.check_scope(key.scopes, ALL_SCOPES)


class CountingKeys(MemoryKeys):
    """Keys that count how often they are asked."""

    asked = 0

    async def find(self, key_id: str) -> tuple[Key, str] | None:
        """Count, and answer."""
        self.asked += 1
        return await super().find(key_id)


async def test_a_good_answer_is_kept_for_a_while() -> None:
    """AUTH-1: a remembered key is looked up again after two seconds, so a revocation elsewhere is seen in time."""
    store, clock = CountingKeys(), SteeredClock()
    authenticator = Authenticator(store, clock, 2.0)
    text = keys.spell("k1", os.urandom(32))
    await store.add(Key("k1", "t", ALL_SCOPES, START), keys.digest(text))
    caller = await authenticator.bearer(f"bearer {text}")
    assert (caller.tenant, caller.key_id, caller.operator) == ("t", "k1", True)
    await store.revoke("k1", START)
    clock.advance(1.9)
    assert await authenticator.still(caller)
    assert store.asked == 1
    clock.advance(0.1)
    assert not await authenticator.still(caller)
    with pytest.raises(Fault):
        await authenticator.bearer(f"Bearer {text}")


async def test_refusals_are_not_remembered() -> None:
    """AUTH-1: a key that is unknown now may be made the next moment."""
    store, clock = CountingKeys(), SteeredClock()
    authenticator = Authenticator(store, clock, 2.0)
    text = keys.spell("k1", os.urandom(32))
    with pytest.raises(Fault):
        await authenticator.key(text)
    await store.add(Key("k1", "t", ALL_SCOPES, START), keys.digest(text))
    assert (await authenticator.key(text))[0].tenant == "t"


class HeldKeys(CountingKeys):
    """Keys that answer when they may."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.may = asyncio.Event(), asyncio.Event()

    async def find(self, key_id: str) -> tuple[Key, str] | None:
        """Read, then wait."""
        found = await super().find(key_id)
        self.begun.set()
        await self.may.wait()
        return found


async def test_one_look_up_serves_all_who_wait() -> None:
    """AUTH-1: who asks for a key that is being looked up waits for that answer; who leaves takes it from nobody."""
    store = HeldKeys()
    authenticator = Authenticator(store, SteeredClock(), 2.0)
    text = keys.spell("k1", os.urandom(32))
    await store.add(Key("k1", "t", ALL_SCOPES, START), keys.digest(text))
    callers = [asyncio.create_task(authenticator.key(text)) for _ in range(5)]
    await store.begun.wait()
    callers[0].cancel()
    await asyncio.wait(callers[:1])
    store.may.set()
    found = await asyncio.gather(*callers[1:])
    assert [key.tenant for key, _ in found] == ["t"] * 4
    await authenticator.key(text)
    assert store.asked == 1


async def test_a_key_revoked_while_it_is_looked_up() -> None:
    """AUTH-1: an answer that was asked for before a revocation here is not remembered after it."""
    store = HeldKeys()
    authenticator = Authenticator(store, SteeredClock(), 2.0)
    text = keys.spell("k1", os.urandom(32))
    await store.add(Key("k1", "t", ALL_SCOPES, START), keys.digest(text))
    early = asyncio.create_task(authenticator.key(text))
    await store.begun.wait()
    await store.revoke("k1", START)
    authenticator.forget("k1")
    store.may.set()
    await early
    with pytest.raises(Fault):
        await authenticator.key(text)


class SilentKeys(MemoryKeys):
    """A store that does not answer."""

    async def find(self, key_id: str) -> tuple[Key, str] | None:
        """Refuse."""
        raise Fault.of("governance_backend_down")


async def test_a_silent_store_admits_nobody_and_ends_nothing() -> None:
    """AUTH-1: without the store no new request is admitted, but work that was admitted goes on."""
    store, clock = MemoryKeys(), SteeredClock()
    text = keys.spell("k1", os.urandom(32))
    await store.add(Key("k1", "t", ALL_SCOPES, START), keys.digest(text))
    caller = await Authenticator(store, clock, 2.0).bearer(f"Bearer {text}")
    silent = Authenticator(SilentKeys(), clock, 2.0)
    with pytest.raises(Fault) as caught:
        await silent.bearer(f"Bearer {text}")
    assert caught.value.code == "governance_backend_down"
    assert await silent.still(caller)


async def test_the_admin_key_may_be_any_words() -> None:
    """AUTH-1: the operator's own words are the admin key of tenant default with every scope, until they change."""
    authenticator = Authenticator(MemoryKeys(), SteeredClock(), 2.0)
    with pytest.raises(Fault):
        await authenticator.bearer("Bearer my words")
    authenticator.admit_admin("my words")
    caller = await authenticator.bearer("Bearer my words")
    assert (caller.tenant, caller.scopes) == ("default", ALL_SCOPES)
    authenticator.admit_admin("other words")
    assert not await authenticator.still(caller)


def test_of_very_many_scopes_that_are_none_some_are_named() -> None:
    """EDG-3: an answer does not grow with what is wrong."""
    with pytest.raises(Fault) as caught:
        keys.scopes_from(["root"] * 20_000)
    assert [error.pointer for error in caught.value.errors][:2] == ["/scopes/0", "/scopes/1"]
    assert len(caught.value.errors) == NAMED_ERRORS
