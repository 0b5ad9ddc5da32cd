"""The guarded fetcher over sockets: what no other check stands before."""

import pytest

from libs.fetching.addresses import Address
from libs.fetching.fetcher import Bounds, Fetcher, NotAllowed, Rules, Unreachable
from libs.fetching.names import SystemNames, UnknownName
from tests.support.media import picture
from tests.support.webs import PUBLIC, WEB, ScriptedNames, answer, two_sites

MOST = 1 << 20


class Turning:
    """Admits an address so many times, and refuses it from then on."""

    def __init__(self, times: int) -> None:
        self.times = times

    def __call__(self, address: Address) -> str | None:
        self.times -= 1
        return None if self.times >= 0 else "leads inside by now"


async def fetched(fetcher: Fetcher, url: str) -> bytes:
    """The bytes behind a URL."""
    try:
        async with fetcher.fetch(url, MOST) as arriving:
            return b"".join([chunk async for chunk in arriving.chunks])
    finally:
        await fetcher.close()


@pytest.mark.parametrize("host", ["cdn.test", PUBLIC])
async def test_the_socket_itself_is_judged(host: str) -> None:
    """AUTH-4: what a socket is about to be connected to is judged at that moment too, whatever was judged before."""
    async with two_sites() as (public, _):
        public.pages["/a.png"] = answer(picture())
        url, names = f"http://{host}:{public.port}/a.png", ScriptedNames({"cdn.test": [[PUBLIC]]})
        free = Rules(host=lambda name: None, address=Turning(2))
        assert await fetched(Fetcher(free, names), url) == picture()
        with pytest.raises(NotAllowed):
            await fetched(Fetcher(Rules(host=lambda name: None, address=Turning(1)), names), url)
        assert len(public.heard) == 1


async def test_each_fetch_has_a_connection_of_its_own() -> None:
    """AUTH-4: no connection outlives the judgement that it was opened under: every fetch looks up and connects anew."""
    names = ScriptedNames({"cdn.test": [[PUBLIC], [PUBLIC], ["127.0.0.1"]]})
    async with two_sites() as (public, private):
        public.pages["/a.png"] = private.pages["/a.png"] = answer(picture())
        fetcher = Fetcher(WEB, names)
        url = f"http://cdn.test:{public.port}/a.png"
        for _ in range(2):
            async with fetcher.fetch(url, MOST) as arriving:
                assert [chunk async for chunk in arriving.chunks]
        with pytest.raises(NotAllowed):
            await fetched(fetcher, url)
        assert (names.asked, len(public.heard), private.heard) == (["cdn.test"] * 3, 2, [])


async def test_nobody_listens() -> None:
    """AUTH-4: a refused connection is told in our own words, without the address."""
    with pytest.raises(Unreachable) as refused:
        await fetched(Fetcher(WEB, ScriptedNames(), Bounds(connect_s=2.0)), f"http://{PUBLIC}:1025/a.png?sig=s3cret")
    assert str(refused.value) == "cannot be connected to"


async def test_this_machines_own_names() -> None:
    """AUTH-4: the machine's resolver is asked as it is; a name that nobody knows is said to be unknown."""
    names = SystemNames()
    assert "127.0.0.1" in await names.addresses("127.0.0.1")
    with pytest.raises(UnknownName):
        await names.addresses("no-such-name.invalid")
    with pytest.raises(UnknownName):
        await names.addresses("a" * 70 + ".example")
