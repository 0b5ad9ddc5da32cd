"""The driver on the wire: what it sends, how often, and what it says when it broke."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from libs.faults.fault import Fault
from services.provider_adapter.domain.exchange import Broken, ExchangeBroken, HttpRequest
from services.provider_adapter.driver import HttpDriver
from services.provider_adapter.ports import Target
from tests.integration.provider_adapter.raw_server import Act, RawServer, answers, babbles, drops, resets, streams

LIMIT = 100_000


@pytest.fixture
async def driver() -> AsyncIterator[HttpDriver]:
    """An open driver."""
    driver = HttpDriver(answer_bytes=LIMIT, connect_s=2, media_s=10)
    await driver.open()
    yield driver
    await driver.close()


def to(server: RawServer, **limits: float) -> Target:
    """The way to a raw server."""
    given = {"connect_s": 2.0, "total_s": 10.0} | limits
    return Target(server.url, "Authorization", "Bearer hush", **given)


def request(method: str, *, fresh: bool) -> HttpRequest:
    """A request with a body where the method has one."""
    body = b'{"paid": "job"}' if method == "POST" else None
    return HttpRequest(method, "/jobs", headers={"content-type": "application/json"}, body=body, fresh=fresh)


@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize("end", [drops, resets])
@pytest.mark.parametrize("method", ["POST", "DELETE", "GET", "PUT"])
async def test_a_connection_dropped_after_the_body_is_one_request(driver, method, end, fresh) -> None:
    """ERR-1a ATT-5: whatever the method, nothing is re-sent, and the failure says that it may have arrived."""
    async with RawServer([end]) as server:
        with pytest.raises(ExchangeBroken) as broken:
            await driver.exchange(request(method, fresh=fresh), to(server))
        assert broken.value.may_have_arrived
        assert broken.value.how is Broken.RESET
        assert len(server.requests) == 1


@pytest.mark.parametrize("end", [drops, resets])
@pytest.mark.parametrize("method", ["POST", "DELETE", "GET", "PUT"])
async def test_a_reused_connection_dropped_after_the_body_is_one_request(driver, method, end) -> None:
    """ERR-1a ATT-5: nor on a kept-alive connection, where aiohttp would send idempotent methods again."""
    async with RawServer([answers("200 OK"), end]) as server:
        await driver.exchange(request(method, fresh=False), to(server))
        with pytest.raises(ExchangeBroken) as broken:
            await driver.exchange(request(method, fresh=False), to(server))
        assert broken.value.may_have_arrived
        assert server.connections == 1
        assert len(server.requests) == 2


async def test_a_paid_submission_rides_a_connection_of_its_own(driver) -> None:
    """ERR-1a: a pooled connection that died unseen cannot make a fresh request uncertain."""
    async with RawServer([answers("200 OK")]) as server:
        await driver.exchange(request("GET", fresh=False), to(server))
        await driver.exchange(request("POST", fresh=True), to(server))
        await driver.exchange(request("POST", fresh=True), to(server))
        assert server.connections == 3


async def test_silence_ends_as_a_read_timeout(driver) -> None:
    """ERR-1a: an answer that does not come in time proves nothing; the request was sent once."""
    async with RawServer([]) as server:
        server.acts.append(server.silent)
        with pytest.raises(ExchangeBroken) as broken:
            await driver.exchange(request("POST", fresh=True), to(server, total_s=0.3))
        assert broken.value.how is Broken.READ_TIMEOUT
        assert len(server.requests) == 1


async def test_an_answer_that_is_cut_is_no_answer(driver) -> None:
    """ERR-1a: a 200 whose body ends early is incomplete, and says which status it began with."""
    async with RawServer([answers("200 OK", b'{"id": "cg', length=50)]) as server:
        with pytest.raises(ExchangeBroken) as broken:
            await driver.exchange(request("POST", fresh=True), to(server))
        assert (broken.value.how, broken.value.status) == (Broken.INCOMPLETE_BODY, 200)


async def test_a_stream_that_has_ended_gives_its_connection_back(driver) -> None:
    """PRF-1: the end of a body may come after its last event; the connection then serves again, else it is closed."""
    over = asyncio.Event()

    async def ends(writer: asyncio.StreamWriter) -> bool:
        await over.wait()
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True

    async with RawServer([streams(b"data: [DONE]\n\n", then=ends), answers("200 OK")]) as server:
        async with driver.stream(request("POST", fresh=False), to(server)) as body:
            assert await body.read(5) == b"data: [DONE]\n\n"
            over.set()
        await driver.exchange(request("POST", fresh=False), to(server))
        assert (len(server.requests), server.connections) == (2, 1)


async def test_what_is_not_http_proves_nothing(driver) -> None:
    """ERR-1a: an unreadable answer may stand for an accepted job."""
    async with RawServer([babbles]) as server:
        with pytest.raises(ExchangeBroken) as broken:
            await driver.exchange(request("POST", fresh=True), to(server))
        assert broken.value.may_have_arrived
        assert len(server.requests) == 1


async def test_an_answer_is_bounded(driver) -> None:
    """ERR-4: an answer beyond the limit is given up, not kept in memory."""
    async with RawServer([answers("200 OK", b"x" * (LIMIT + 1))]) as server:
        with pytest.raises(ExchangeBroken) as broken:
            await driver.exchange(request("POST", fresh=True), to(server))
        assert broken.value.how is Broken.TOO_LARGE


@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_no_redirect_is_followed_with_our_key(driver, method) -> None:
    """ERR-4: a redirect is an answer like another; the key goes to the channel's own URL only."""
    async with RawServer([answers("200 OK")]) as elsewhere:
        there = answers("307 Temporary Redirect", b"", f"Location: {elsewhere.url}/x")
        async with RawServer([there]) as server:
            response = await driver.exchange(request(method, fresh=False), to(server))
            assert response.status == 307
            assert "authorization: bearer hush" in server.requests[0].lower()
            assert elsewhere.requests == []


def redirect(url: str) -> Act:
    """A redirect to that place."""
    return answers("302 Found", b"", f"Location: {url}")


async def fetched(driver, url: str, door: Target | None) -> bytes:
    """The bytes behind a URL."""
    async with driver.fetch(url, door) as download:
        assert download.status == 200
        return b"".join([chunk async for chunk in download.chunks])


async def test_the_key_opens_a_result_at_the_channels_own_origin(driver) -> None:
    """ERR-4: a keyed result is a path under the base URL or a URL of its origin; the key goes along, also on a redirect
    within the origin."""
    async with RawServer([redirect("/v1/files/2"), answers("200 OK", b"clip")]) as server:
        door = Target(f"{server.url}/v1", "x-goog-api-key", "hush", 2.0, 5.0)
        assert await fetched(driver, "/files/1", door) == b"clip"
        assert await fetched(driver, f"{server.url}/v1/files/3", door) == b"clip"
        assert [head.split()[1] for head in server.requests] == ["/v1/files/1", "/v1/files/2", "/v1/files/3"]
        assert all("x-goog-api-key: hush" in head for head in server.requests)


async def test_the_key_never_goes_to_another_origin(driver) -> None:
    """ERR-4: not where the provider's answer points elsewhere, and not along a redirect that leads there."""
    async with RawServer([answers("200 OK", b"clip")]) as elsewhere:
        async with RawServer([redirect(f"{elsewhere.url}/signed")]) as server:
            door = Target(server.url, "x-goog-api-key", "hush", 2.0, 5.0)
            assert await fetched(driver, "/content", door) == b"clip"
            assert await fetched(driver, f"{elsewhere.url}/straight", door) == b"clip"
            assert "hush" in server.requests[0]
        assert len(elsewhere.requests) == 2
        assert "hush" not in "".join(elsewhere.requests)


async def test_a_fetch_without_a_door_carries_no_key_and_does_not_wander_for_ever(driver) -> None:
    """ERR-4 ERR-1a: redirects are followed a few times, to http and https only."""
    async with RawServer([redirect("/again")]) as server:
        with pytest.raises(ExchangeBroken) as broken:
            await fetched(driver, server.url + "/", None)
        assert (broken.value.how, len(server.requests)) == (Broken.PROTOCOL, 6)
        assert "hush" not in "".join(server.requests)
    async with RawServer([redirect("file:///etc/passwd")]) as server:
        with pytest.raises(ExchangeBroken) as broken:
            await fetched(driver, server.url + "/", None)
        assert (broken.value.how, len(server.requests)) == (Broken.PROTOCOL, 1)


async def test_before_a_connection_nothing_has_left(driver) -> None:
    """ERR-1a: a refused connection and a failed handshake are failures before sending."""
    target = Target("http://127.0.0.1:1", "Authorization", "Bearer hush", 2.0, 5.0)
    with pytest.raises(ExchangeBroken) as refused:
        await driver.exchange(request("POST", fresh=True), target)
    assert (refused.value.how, refused.value.may_have_arrived) == (Broken.CONNECT_REFUSED, False)
    async with RawServer([drops]) as server:
        target = Target(server.url.replace("http:", "https:"), "Authorization", "Bearer hush", 0.5, 5.0)
        with pytest.raises(ExchangeBroken) as broken:
            await driver.exchange(request("POST", fresh=True), target)
        assert not broken.value.may_have_arrived
        assert server.requests == []


async def test_a_base_url_that_is_none(driver) -> None:
    """CAT-6: it is a fault of the configuration, not of the provider."""
    with pytest.raises(Fault) as caught:
        await driver.exchange(request("GET", fresh=False), Target("//x", "a", "b", 1, 1))
    assert caught.value.code == "source_not_configured"


async def test_a_key_is_not_in_the_text_of_anything(driver) -> None:
    """ERR-4: neither the target nor a broken exchange repeats the key."""
    async with RawServer([drops]) as server:
        target = to(server)
        with pytest.raises(ExchangeBroken) as broken:
            await driver.exchange(request("POST", fresh=True), target)
        assert "hush" not in repr(target) + repr(broken.value) + str(broken.value)
