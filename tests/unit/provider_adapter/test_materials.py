"""Materials of a job on their way to a dialect: judged where nobody did, and in the form that it takes."""

import base64
import json
from typing import Any

import pytest

from libs.materials.intake import NotAllowed, Unfit
from libs.materials.links import Links
from services.provider_adapter.app.materials import Materials
from services.provider_adapter.domain.adapter import Auth, Manifest
from services.provider_adapter.domain.inputs import JsonInput
from services.provider_adapter.domain.job import Job
from services.provider_adapter.domain.media import digest
from tests.support.worlds import steered_world
from tests.unit.provider_adapter.fakes import MP4, MemoryMedia, PlayedIntake
from tests.unit.provider_adapter.test_use_cases import ENDPOINT, House, answer, refusal

PNG = b"\x89PNG\r\n\x1a\n" + b"p" * 40
LINKS = Links("https://pointsman.example", b"a key that nobody guesses")
INSIDE, GONE, FINE = "http://10.0.0.1/a.png", "https://cdn.example/gone.png", "https://cdn.example/a.png?sig=s3cret"


def manifest(materials: str = "url", data_urls: tuple[str, ...] = ("image", "video", "audio")) -> Manifest:
    """A dialect."""
    return Manifest("dialect", ("video",), (), Auth(), "none", False, materials=materials, data_urls=data_urls)


def job(**given: Any) -> Job:
    """A job with that input."""
    return Job("attempt-1", "token-1", "video", "m", {"prompt": "p", **given})


class Desk:
    """The use-case over fakes."""

    def __init__(self, links: Links | None = None) -> None:
        _, self.clock = steered_world()
        self.store = MemoryMedia()
        pages: dict[str, Any] = {INSIDE: NotAllowed("leads inside"), GONE: Unfit("is gone"), FINE: PNG}
        self.intake = PlayedIntake(self.store, pages, {INSIDE: "leads inside"})
        self.materials = Materials(self.store, self.intake, links, self.clock, 1000)


async def test_a_url_that_nobody_judged_is_taken_in_and_never_passed_on() -> None:
    """AUTH-4: what comes to the adapter as a URL or as base64 is fetched, judged and kept as at the edge."""
    desk = Desk()
    encoded = {"base64": base64.b64encode(MP4).decode(), "media_type": "x/y"}
    ready = await desk.materials.ready(job(first_frame={"url": FINE}, reference_videos=[encoded]), manifest())
    assert ready.input["first_frame"] == {"artifact": digest(PNG)}
    assert ready.input["reference_videos"] == [{"artifact": digest(MP4)}]
    assert ready.material("first_frame") == "data:image/png;base64," + base64.b64encode(PNG).decode()
    assert desk.intake.taken == [(FINE, "image")]


@pytest.mark.parametrize(
    "given, code, pointer",
    [
        ({"last_frame": {"url": INSIDE}}, "url_not_allowed", "/input/last_frame/url"),
        ({"reference_images": [{"url": FINE}, {"url": GONE}]}, "material_unreachable", "/input/reference_images/1"),
        ({"reference_videos": [{"url": FINE}]}, "material_unreachable", "/input/reference_videos/0"),
        ({"first_frame": {"base64": "*"}}, "validation_failed", "/input/first_frame/base64"),
    ],
)
async def test_what_may_not_be_used_names_its_field(given: Any, code: str, pointer: str) -> None:
    """AUTH-4: a refusal at the adapter names the field, and not the URL."""
    fault = await refusal(Desk().materials.ready(job(**given), manifest()))
    assert (fault.code, [error.pointer for error in fault.errors]) == (code, [pointer])
    assert "cdn.example" not in str(fault)


async def test_nothing_is_sent_for_a_material_that_is_refused() -> None:
    """AUTH-4: a refused material ends the submission before anything leaves, as the request's own fault."""
    house = House(answer(200, {"id": "cgt-1"}))
    house.intake.pages[INSIDE] = NotAllowed("leads inside")
    fault = await refusal(house.submit(ENDPOINT, job(first_frame={"url": INSIDE})))
    assert (fault.code, fault.category, fault.scope, fault.retryable) == (
        "url_not_allowed",
        "request",
        "request",
        False,
    )
    assert house.transport.sent == []


async def test_each_dialect_gets_the_form_that_it_takes() -> None:
    """AUTH-4: a `url` dialect gets a link of ours where one can be made, else a data: URL; others the bytes."""
    picture = {"first_frame": {"url": FINE}}
    linked = Desk(LINKS)
    ready = await linked.materials.ready(job(**picture), manifest())
    link = ready.material("first_frame")
    assert link == LINKS.url(digest(PNG), linked.clock.now())
    assert ready.contents[digest(PNG)].data == b"", "nobody reads what nobody sends"
    assert "signature" not in repr(ready.contents)
    for form in ("base64", "upload"):
        ready = await linked.materials.ready(job(**picture), manifest(form))
        assert ready.contents[digest(PNG)].data == PNG
        assert ready.material("first_frame").startswith("data:image/png;base64,")
    fault = await refusal(Desk().materials.ready(job(**picture), manifest(data_urls=("audio",))))
    assert (fault.code, "POINTSMAN_PUBLIC_URL" in fault.message) == ("source_not_configured", True)


async def test_an_artifact_that_is_not_there_is_no_material() -> None:
    """AUTH-4: a link is made for what is kept alone."""
    fault = await refusal(Desk(LINKS).materials.ready(job(first_frame={"artifact": "0" * 64}), manifest()))
    assert fault.code == "material_unreachable"


@pytest.mark.parametrize("escaped", [False, True])
async def test_urls_that_are_passed_on_are_judged(escaped: bool) -> None:
    """AUTH-4: a picture of a chat that the provider fetches itself is refused by the same rule, by its pointer."""
    desk = Desk()
    pictures = [FINE, "data:image/png;base64,aa", INSIDE]
    content = [{"type": "image_url", "image_url": {"url": url}} for url in pictures]
    words = json.dumps({"messages": [{"role": "user", "content": content}]})
    if escaped:
        words = words.replace("image_url", "\\u0069mage_url")
    for given in (JsonInput(words.encode()), json.loads(words)):
        fault = await refusal(desk.materials.ready(Job("a", "t", "chat", "m", given), manifest()))
        assert fault.code == "url_not_allowed"
        assert [error.pointer for error in fault.errors] == ["/input/messages/0/content/2/image_url/url"]
    assert desk.intake.taken == []


async def test_documents_and_clips_that_are_passed_on_are_judged() -> None:
    """AUTH-4: a document that is named by its address, and a clip, are the provider's to fetch like a picture; bytes in
    base64, bare or as a `data:` URL, are content."""
    files = [INSIDE, FINE, "data:application/pdf;base64,aa", "JVBERi0xLjQK"]
    content: list[Any] = [{"type": "file", "file": {"file_data": data}} for data in files]
    content += [{"type": "video_url", "video_url": INSIDE}, {"type": "video_url", "video_url": {"url": INSIDE}}]
    given = JsonInput(json.dumps({"messages": [{"role": "user", "content": content}]}).encode())
    fault = await refusal(Desk().materials.ready(Job("a", "t", "chat", "m", given), manifest()))
    assert fault.code == "url_not_allowed"
    places = ["0/file/file_data", "4/video_url", "5/video_url/url"]
    assert [error.pointer for error in fault.errors] == [f"/input/messages/0/content/{at}" for at in places]


async def test_the_wire_carries_what_was_kept() -> None:
    """AUTH-4: the provider's request holds the bytes that were judged, and no address of the user's."""
    house = House(answer(200, {"id": "cgt-1"}))
    house.intake.pages[FINE] = PNG
    await house.submit(ENDPOINT, job(first_frame={"url": FINE}))
    [(request, _)] = house.transport.sent
    body = json.loads(request.body)
    assert body["content"][1]["image_url"]["url"].startswith("data:image/png;base64,")
    assert "s3cret" not in request.body.decode()
