"""Materials at the public door: fetched safely, judged, kept once, named by digest."""

import asyncio
import base64
import gzip
import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from libs.faults.fault import Fault
from libs.fetching.fetcher import Bounds, Fetcher
from libs.materials.links import Links
from tests.contract.edge.house import EdgeHouse, edge_house
from tests.contract.edge.test_problems import check, pointers
from tests.support.media import clip, picture, sound
from tests.support.webs import PRIVATE, PUBLIC, WEB, ScriptedNames, Site, answer, redirect, two_sites

BOUNDS = Bounds(connect_s=2.0, total_s=20.0, redirects=3)
FRAME = "/input/first_frame/url"


@dataclass
class Studio:
    """The edge with a small web around it, and a user of it."""

    edge: EdgeHouse
    public: Site
    private: Site
    names: ScriptedNames
    user: httpx2.AsyncClient

    async def order(self, url: str) -> httpx2.Response:
        """A run with that URL as its first frame."""
        return await self.post({"prompt": "x", "first_frame": {"url": url}})

    async def post(self, given: Any) -> httpx2.Response:
        """A run with that input."""
        return await self.user.post("/v1/runs", json={"model": "clip", "input": given})

    def at(self, path: str, host: str = "cdn.test") -> str:
        """A URL of the small web."""
        return f"http://{host}:{self.public.port}{path}"

    async def refused(self, url: str, code: str = "url_not_allowed", pointer: str = FRAME) -> str:
        """The reason, once it is sure that nothing was created and nobody private was spoken to."""
        problem = check(await self.order(url), 422, code)
        assert pointers(problem) == [pointer]
        assert self.edge.runs.created == []
        assert self.private.heard == []
        reason: str = problem["errors"][0]["reason"]
        assert str(self.public.port) not in reason
        return reason


@pytest.fixture
async def studio(tmp_path: Path) -> AsyncIterator[Studio]:
    """See Studio."""
    names = ScriptedNames({"cdn.test": [[PUBLIC]]})
    async with two_sites() as (public, private):
        async with edge_house(tmp_path, fetcher=Fetcher(WEB, names, BOUNDS)) as house:
            async with await house.user() as user:
                yield Studio(house, public, private, names, user)


async def test_a_url_becomes_an_artifact(studio: Studio) -> None:
    """AUTH-4: what a URL names is fetched once, kept by its digest, and the order names the artifact from then on."""
    frame = picture()
    studio.public.pages["/a.png?sig=s3cret"] = answer(frame, "application/octet-stream")
    url = {"url": studio.at("/a.png?sig=s3cret")}
    made = await studio.post({"prompt": "x", "first_frame": url, "reference_images": [url, url]})
    assert made.status_code == 202, made.text
    sha256 = hashlib.sha256(frame).hexdigest()
    sent = studio.edge.runs.created[0].input
    assert sent["first_frame"]["artifact"] == sha256
    assert [item["artifact"] for item in sent["reference_images"]] == [sha256, sha256]
    assert "s3cret" not in str(studio.edge.runs.created[0])
    kept = await studio.user.get(f"/v1/artifacts/{sha256}")
    assert (kept.content, kept.headers["content-type"]) == (frame, "image/png")
    assert len(studio.public.heard) == 1
    assert studio.names.asked == ["cdn.test"]
    assert "authorization" not in studio.public.heard[0].lower()


@pytest.mark.parametrize(
    "host",
    [
        PRIVATE, "127.1", "2130706433", "0x7f.0.0.1", "0177.0.0.1", "10.0.0.1", "169.254.169.254", "100.64.0.1",
        "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]", "[fe80::1]", "[fd00::1]", "localhost", "metadata.google.internal", "①②⑦.0.0.1",
    ],
)  # fmt: skip
async def test_an_address_that_is_not_public_is_refused(studio: Studio, host: str) -> None:
    """AUTH-4: private, loopback, link-local and metadata addresses are url_not_allowed, however they are spelled."""
    studio.private.pages["/a.png"] = answer(picture())
    await studio.refused(studio.at("/a.png", host))
    assert studio.names.asked == []


@pytest.mark.parametrize(
    "answers",
    [
        [PRIVATE], ["10.0.0.7"], ["169.254.169.254"], ["fe80::1"], ["::ffff:127.0.0.1"], ["::ffff:a9fe:a9fe"],
        [PUBLIC, PRIVATE], ["fe80::1%eth0"], ["64:ff9b::a00:1"],
    ],
)  # fmt: skip
async def test_a_name_that_leads_inside_is_refused(studio: Studio, answers: list[str]) -> None:
    """AUTH-4: a name is judged by every address it has; one that is not public refuses it, and nothing is connected."""
    studio.private.pages["/a.png"] = studio.public.pages["/a.png"] = answer(picture())
    studio.names.answers["evil.test"] = [answers]
    await studio.refused(studio.at("/a.png", "evil.test"))
    assert studio.public.heard == []


async def test_a_redirect_inside_is_refused(studio: Studio) -> None:
    """AUTH-4: redirects are followed one by one under the same rule: to an address, to a name, to another scheme."""
    studio.private.pages["/a.png"] = answer(picture())
    studio.names.answers["evil.test"] = [[PRIVATE]]
    targets = (studio.at("/a.png", PRIVATE), studio.at("/a.png", "evil.test"), "file:///etc/passwd",
               studio.at("/a.png", "u:p@cdn.test"), f"//{PRIVATE}:{studio.public.port}/a.png")  # fmt: skip
    for number, target in enumerate(targets):
        studio.public.pages[f"/{number}"] = redirect(target)
        await studio.refused(studio.at(f"/{number}"))


async def test_a_redirect_outside_is_followed(studio: Studio) -> None:
    """AUTH-4: a redirect to a public place is followed, each hop looked up anew; too many, or into nothing, are not."""
    studio.public.pages["/1"] = redirect("/2", 307)
    studio.public.pages["/2"] = redirect(studio.at("/a.png"), 301)
    studio.public.pages["/a.png"] = answer(picture())
    assert (await studio.order(studio.at("/1"))).status_code == 202
    assert studio.names.asked == ["cdn.test"] * 3
    studio.edge.runs.created.clear()
    studio.public.pages["/round"] = redirect("/round")
    assert "3 redirects" in await studio.refused(studio.at("/round"), "material_unreachable")
    studio.public.pages["/lost"] = redirect("")
    await studio.refused(studio.at("/lost"), "material_unreachable")


async def test_a_name_that_changes_its_mind(studio: Studio) -> None:
    """AUTH-4: a name that answers publicly first and privately then is connected to as it was judged, or not at all."""
    studio.private.pages["/a.png"] = answer(picture(colour=1))
    studio.public.pages["/a.png"] = answer(picture(colour=2))
    studio.names.answers["turning.test"] = [[PUBLIC], [PRIVATE]]
    made = await studio.order(studio.at("/a.png", "turning.test"))
    assert made.status_code == 202
    sha256 = hashlib.sha256(picture(colour=2)).hexdigest()
    assert studio.edge.runs.created[0].input["first_frame"]["artifact"] == sha256
    assert studio.names.asked == ["turning.test"], "one lookup, and it was the one that was connected to"
    assert studio.private.heard == []
    studio.edge.runs.created.clear()
    await studio.refused(studio.at("/a.png", "turning.test"))
    studio.names.answers["turning.test"] = [[PUBLIC], [PRIVATE]]
    studio.public.pages["/again"] = redirect(studio.at("/a.png", "turning.test"))
    await studio.refused(studio.at("/again", "turning.test"))


async def test_what_is_only_passed_on_is_judged_too(studio: Studio) -> None:
    """AUTH-4: callbacks, and pictures in a chat that the provider fetches itself, are judged by words and by names."""
    studio.names.answers["evil.test"] = [[PRIVATE]]
    for url in (studio.at("/hook", "evil.test"), studio.at("/hook", PRIVATE), studio.at("/hook", "unknown.test")):
        body = {"model": "clip", "input": {"prompt": "x"}, "callback_url": url}
        assert pointers(check(await studio.user.post("/v1/runs", json=body), 422, "url_not_allowed")) == [
            "/callback_url"
        ]
        parts = [{"type": "text", "text": "x"}, {"type": "image_url", "image_url": {"url": url, "detail": "low"}}]
        problem = check(await studio.post({"messages": [{"role": "user", "content": parts}]}), 422, "url_not_allowed")
        assert pointers(problem) == ["/input/messages/0/content/1/image_url/url"]
    assert studio.edge.runs.created == []
    inline = "data:image/png;base64," + base64.b64encode(picture()).decode()
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in (studio.at("/a.png"), inline)]
    made = await studio.post({"messages": [{"role": "user", "content": parts}]})
    assert made.status_code == 202, made.text
    assert studio.public.heard == studio.private.heard == []


async def test_every_field_that_is_wrong_is_named(studio: Studio) -> None:
    """AUTH-4: all materials that cannot be had are named at once; a refused address gives the answer its code."""
    studio.public.pages["/a.png"] = answer(picture())
    given = {
        "prompt": "x",
        "first_frame": {"url": studio.at("/a.png")},
        "reference_images": [{"url": studio.at("/gone")}, {"url": studio.at("/x", "unknown.test")}],
    }
    problem = check(await studio.post(given), 422, "material_unreachable")
    assert sorted(pointers(problem)) == ["/input/reference_images/0/url", "/input/reference_images/1/url"]
    given["last_frame"] = {"url": studio.at("/a.png", PRIVATE)}
    given["reference_images"].append({"artifact": "ab" * 32})
    assert sorted(pointers(check(await studio.post(given), 422, "url_not_allowed"))) == [
        "/input/last_frame/url",
        "/input/reference_images/0/url",
        "/input/reference_images/1/url",
        "/input/reference_images/2/artifact",
    ]
    many = {"prompt": "x", "reference_images": [{"url": studio.at("/a.png")}] * 257}
    assert pointers(check(await studio.post(many), 422, "validation_failed")) == ["/input"]


HTML = b"<html>not a picture</html>"


@pytest.mark.parametrize(
    "page, reason",
    [
        (answer(HTML, "image/png"), "of no known type"),
        (answer(sound(), "image/png"), "audio/wav"),
        (answer(b""), "is empty"),
        (answer(picture()[:60]), "broken picture"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n" + picture(), "broke off"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n", "999999999 bytes"),
        (answer(gzip.compress(picture()), Content_Encoding="gzip"), "compressed"),
        (b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", "status 500"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "not HTTP"),
        (b"", "broke off"),
    ],
)
async def test_what_comes_is_judged_by_its_bytes(studio: Studio, page: bytes, reason: str) -> None:
    """AUTH-4: type by first bytes and not by header, size before and while it comes, nothing unpacked, nothing half."""
    studio.public.pages["/a"] = page
    assert reason in await studio.refused(studio.at("/a"), "material_unreachable")


async def test_a_stream_without_end_is_cut(studio: Studio) -> None:
    """AUTH-4: content that announces no length is cut at the limit of its field."""
    sent = 0

    async def endless(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n" + picture())
        while not writer.is_closing():
            writer.write(bytes(1 << 20))
            sent += 1
            await writer.drain()

    studio.public.pages["/a"] = endless
    assert "more than the 31457280 bytes" in await studio.refused(studio.at("/a"), "material_unreachable")
    assert sent < 60


async def test_a_production_is_told_everything_at_once(studio: Studio) -> None:
    """RUN-3, AUTH-4: what the edge finds wrong with the body and its materials, and what runs finds wrong with the
    rest, is one answer; runs is asked with a stand-in for each material, and nothing is made."""
    studio.edge.runs.refusal = Fault.invalid(("/production/nodes/0/model", "no such model"))
    given = {"first_frame": {"url": studio.at("/gone")}, "last_frame": {"artifact": "ab" * 32}, "clip": "${a.artifact}"}
    node = {"id": "a", "kind": "generate", "model": "gone", "input": given}
    body = {
        "production": {"production": "p", "nodes": [node], "inputs": {"logo": {"base64": "*", "media_type": "a/b"}}},
        "labels": {"a": 1},
        "callback_url": "nowhere",
    }
    assert sorted(pointers(check(await studio.user.post("/v1/runs", json=body), 422, "validation_failed"))) == [
        "/callback_url",
        "/labels/a",
        "/production/inputs/logo/base64",
        "/production/nodes/0/input/first_frame/url",
        "/production/nodes/0/input/last_frame/artifact",
        "/production/nodes/0/model",
    ]
    studio.edge.runs.refusal = None
    check(await studio.user.post("/v1/runs", json=body), 422, "validation_failed")
    (asked,) = studio.edge.runs.checked
    seen = asked.production["nodes"][0]["input"]
    assert [seen["first_frame"]["artifact"], seen["last_frame"]["artifact"], seen["clip"]] == [
        "0" * 64,
        "0" * 64,
        "${a.artifact}",
    ]
    assert studio.edge.runs.created == []


async def test_a_server_that_holds_on_is_left(tmp_path: Path) -> None:
    """AUTH-4: the time of one URL is bounded, redirects and a slow drip included."""
    silent = asyncio.Event()

    async def drip(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + picture()[:8])
        await writer.drain()
        await silent.wait()

    names = ScriptedNames({"cdn.test": [[PUBLIC]]})
    async with two_sites() as (public, _):
        public.pages["/a"] = drip
        fetcher = Fetcher(WEB, names, Bounds(connect_s=0.2, total_s=0.3))
        async with edge_house(tmp_path, fetcher=fetcher) as house, await house.user() as user:
            url = f"http://cdn.test:{public.port}/a"
            body = {"model": "clip", "input": {"prompt": "x", "first_frame": {"url": url}}}
            problem = check(await user.post("/v1/runs", json=body), 422, "material_unreachable")
            assert "within 0.3 s" in problem["errors"][0]["reason"]
        silent.set()


@pytest.mark.parametrize(
    "field, content, media_type",
    [
        ("reference_images", picture(form="JPEG"), "image/jpeg"),
        ("reference_images", picture(form="WEBP"), "image/webp"),
        ("reference_images", picture(form="GIF"), "image/gif"),
        ("reference_videos", clip(), "video/mp4"),
        ("reference_videos", clip(suffix="webm"), "video/webm"),
        ("reference_audios", sound(), "audio/wav"),
        ("reference_audios", sound(suffix="mp3"), "audio/mpeg"),
        ("reference_audios", sound(suffix="flac"), "audio/flac"),
        ("reference_audios", sound(suffix="m4a"), "audio/mp4"),
        ("reference_audios", sound(suffix="ogg"), "audio/ogg"),
        ("reference_audios", sound(suffix="aac"), "audio/aac"),
    ],
)
async def test_real_media_of_each_family(studio: Studio, field: str, content: bytes, media_type: str) -> None:
    """AUTH-4: pictures, clips and sounds pass by URL, as base64 and as an upload, and are typed by what they are."""
    studio.public.pages["/m"] = answer(content, "application/octet-stream")
    upload = await studio.user.post("/v1/artifacts", content=content)
    assert upload.json()["media_type"] == media_type
    encoded = {"base64": base64.b64encode(content).decode(), "media_type": "x/y"}
    items = [{"url": studio.at("/m")}, encoded, {"artifact": upload.json()["sha256"]}]
    made = await studio.post({"prompt": "x", field: items})
    assert made.status_code == 202, made.text
    sent = studio.edge.runs.created[0].input[field]
    assert [item["artifact"] for item in sent] == [hashlib.sha256(content).hexdigest()] * 3
    assert (await studio.edge.blobs.stat(sent[0]["artifact"])).media_type == media_type


@pytest.mark.parametrize(
    "field, content, reason",
    [
        ("reference_images", clip(), "is video/mp4"),
        ("reference_videos", picture(), "is image/png"),
        ("reference_videos", clip()[:1500], "broken or incomplete"),
        ("reference_audios", picture(), "is image/png"),
        ("reference_audios", clip(), "holds no audio"),
        ("reference_images", b"plain words", "of no known type"),
    ],
)
async def test_base64_and_uploads_are_judged_alike(studio: Studio, field: str, content: bytes, reason: str) -> None:
    """AUTH-4: bytes in the request and uploaded artifacts are held to what their field takes, as URLs are."""
    upload = await studio.user.post("/v1/artifacts", content=content, headers={"content-type": "image/png"})
    encoded = {"base64": base64.b64encode(content).decode(), "media_type": "image/png"}
    given = {"prompt": "x", field: [encoded, {"artifact": upload.json()["sha256"]}]}
    problem = check(await studio.post(given), 422, "material_unreachable")
    assert pointers(problem) == [f"/input/{field}/0/base64", f"/input/{field}/1/artifact"]
    assert all(reason in error["reason"] for error in problem["errors"])
    assert studio.edge.runs.created == []


async def test_the_operator_may_allow_private_addresses(tmp_path: Path) -> None:
    """AUTH-4: POINTSMAN_ALLOW_PRIVATE_URLS lets materials lie on this machine; by default nothing does."""
    async with two_sites() as (_, private):
        private.pages["/a.png"] = answer(picture())
        body = {
            "model": "clip",
            "input": {"prompt": "x", "first_frame": {"url": f"http://{PRIVATE}:{private.port}/a.png"}},
        }
        async with edge_house(tmp_path / "shut") as house, await house.user() as user:
            check(await user.post("/v1/runs", json=body), 422, "url_not_allowed")
            assert private.heard == []
        async with edge_house(tmp_path / "open", allow_private_urls=True) as house, await house.user() as user:
            made = await user.post("/v1/runs", json={**body, "callback_url": f"http://{PRIVATE}:1024/hook"})
            assert made.status_code == 202, made.text
            assert len(private.heard) == 1


async def test_a_link_opens_one_material_without_a_key(tmp_path: Path) -> None:
    """AUTH-4: what a provider is given opens that material for a day; without links configured nothing is opened."""
    links = Links("https://pointsman.example", b"a key that nobody guesses")
    async with edge_house(tmp_path, links=links) as house, house.client() as stranger:
        blob = await house.blobs.put(picture(), "image/png")
        url = links.url(blob.sha256, house.clock.now()).removeprefix("https://pointsman.example")
        answered = await stranger.get(url)
        assert (answered.status_code, answered.content) == (200, picture())
        part = await stranger.get(url, headers={"range": "bytes=0-3"})
        assert (part.status_code, part.content) == (206, picture()[:4])
        check(await stranger.get(url[:-1] + ("0" if url[-1] != "0" else "1")), 404, "not_found")
        check(await stranger.get(url.partition("?")[0]), 404, "not_found")
        check(await stranger.get(f"/v1/artifacts/{blob.sha256}"), 401, "unauthenticated")
        house.clock.advance(86_400)
        check(await stranger.get(url), 404, "not_found")
    async with edge_house(tmp_path) as house, house.client() as stranger:
        check(await stranger.get(url), 404, "not_found")


async def test_the_parts_of_a_film_are_taken_in(studio: Studio) -> None:
    """AUTH-4, EDG-3: clips are judged as video, voices as sound, each by its place; null is a clip without a voice."""
    studio.public.pages["/1.mp4"] = answer(clip())
    studio.public.pages["/1.wav"] = answer(sound())
    film = {"clips": [{"url": studio.at("/1.mp4")}] * 2, "narration": [None, {"url": studio.at("/1.wav")}]}
    assert (await studio.post({**film, "subtitles": ["One.", ""]})).status_code == 202
    [order] = studio.edge.runs.created
    kept = [hashlib.sha256(content).hexdigest() for content in (clip(), sound())]
    assert order.input["clips"] == [{"artifact": kept[0]}] * 2
    assert order.input["narration"] == [None, {"artifact": kept[1]}]
    swapped = {"clips": [{"url": studio.at("/1.wav")}], "narration": [{"url": studio.at("/1.mp4")}]}
    problem = check(await studio.post(swapped), 422, "material_unreachable")
    assert sorted(pointers(problem)) == ["/input/clips/0/url", "/input/narration/0/url"]
    problem = check(await studio.post({"clips": [None], "narration": [1]}), 422, "validation_failed")
    assert sorted(pointers(problem)) == ["/input/clips", "/input/narration"]
