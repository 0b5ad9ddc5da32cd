"""What routing asks of a peer about many things at once."""

import asyncio
from collections.abc import Sequence

import pytest

from libs.faults.fault import Fault
from libs.kernel.deadlines import carry_deadline, current_deadline
from services.routing.peers.batches import PATIENCE_S, Batches


class Peer:
    """Answers in capitals; what begins with `slow` takes until it is told to."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.deadlines: set[float | None] = set()
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()

    async def __call__(self, asks: Sequence[str]) -> Sequence[str]:
        """One call."""
        self.calls.append(list(asks))
        self.begun.set()
        self.deadlines.add(current_deadline())
        if any(ask.startswith("slow") for ask in asks):
            await self.go_on.wait()
        if "bad" in asks:
            raise Fault.of("validation_failed", "bad")
        if "away" in asks:
            raise Fault.of("peer_unavailable", "away")
        return [ask.upper() for ask in asks]


async def test_who_asks_at_once_shares_a_call_and_nobodys_deadline() -> None:
    """PRF-1, OPS-4: one call for all that wait, under the time of none of them."""
    peer = Peer()
    batches = Batches(peer, lambda ask: ask)
    carry_deadline(1.0)
    assert await asyncio.gather(*map(batches.ask, "abc")) == ["A", "B", "C"]
    assert peer.calls == [["a", "b", "c"]]
    assert peer.deadlines == {None}


async def test_the_fault_of_one_is_its_own_and_that_of_the_peer_everybodys() -> None:
    """CAP-1: asked one by one where one of them was refused, and once where the peer is away."""
    peer = Peer()
    batches = Batches(peer, lambda ask: ask)
    answers = await asyncio.gather(*map(batches.ask, ("a", "bad")), return_exceptions=True)
    assert (answers[0], getattr(answers[1], "code", "")) == ("A", "validation_failed")
    assert peer.calls == [["a", "bad"], ["a"], ["bad"]]
    with pytest.raises(Fault) as caught:
        await asyncio.gather(batches.ask("b"), batches.ask("away"))
    assert caught.value.code == "peer_unavailable"
    assert peer.calls[3:] == [["b", "away"]]


async def test_a_call_that_stands_still_holds_up_nobody_who_comes_later() -> None:
    """CAP-12, VER-6: of several replicas one may stand still; who asks after a while takes another lane."""
    peer, moments = Peer(), [0.0]
    batches = Batches(peer, lambda ask: ask, lambda: moments[-1])
    first = asyncio.create_task(batches.ask("slow"))
    await peer.begun.wait()
    moments.append(PATIENCE_S / 2)
    behind = asyncio.create_task(batches.ask("behind"))
    await asyncio.sleep(0)
    moments.append(PATIENCE_S)
    assert await batches.ask("later") == "LATER"
    assert not behind.done()
    peer.go_on.set()
    assert await asyncio.gather(first, behind) == ["SLOW", "BEHIND"]
    assert peer.calls == [["slow"], ["later"], ["behind"]]
