"""Synchronous work over a real socket: pictures in both dialects, speech and models."""

import base64
import io
import wave

import pytest
from PIL import Image

from services.studio.media.voice import VOICES

SEEDREAM = "doubao-seedream-4-0-250828"


async def test_seedream_pictures_decode_at_the_asked_size(caller):
    """A set of pictures by link: each decodes, has the asked size, and is charged by number."""
    many = {"sequential_image_generation": "auto", "sequential_image_generation_options": {"max_images": 2}}
    body = {"model": SEEDREAM, "prompt": "a harbour", "size": "1280x720", **many}
    status, answer = await caller.call("POST", "ember", "/images/generations", json=body)
    assert (status, answer["usage"]["generated_images"]) == (200, 2)
    for item in answer["data"]:
        async with caller.session.get(item["url"]) as file:
            assert file.headers["content-type"] == "image/jpeg"
            image = Image.open(io.BytesIO(await file.read()))
            image.load()
        assert image.size == (1280, 720)
    told = await caller.lab("GET", "/ledger?account=ember")
    assert told["totals"]["charged"] == {"CNY": "0.40"}


async def test_openai_pictures_come_in_base64_or_by_link(caller):
    """b64_json by default, url when asked; the bytes are the asked format and size."""
    body = {"model": "gpt-image-1", "prompt": "a harbour", "size": "640x360"}
    status, answer = await caller.call("POST", "dahlia", "/images/generations", json=body)
    assert status == 200
    image = Image.open(io.BytesIO(base64.b64decode(answer["data"][0]["b64_json"])))
    assert (image.format, image.size) == ("PNG", (640, 360))
    assert answer["usage"]["output_tokens"] > 0
    body |= {"response_format": "url", "output_format": "webp"}
    _, answer = await caller.call("POST", "dahlia", "/images/generations", json=body)
    async with caller.session.get(answer["data"][0]["url"], headers={"Range": "bytes=0-3"}) as file:
        assert (file.status, await file.read()) == (206, b"RIFF")


async def test_a_reference_picture_is_seen_in_the_result(caller):
    """The reference changes the picture; one that is no image is refused before anything is accepted."""
    buffer = io.BytesIO()
    Image.new("RGB", (64, 64), "#ff00ff").save(buffer, "PNG")
    reference = "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
    body = {"model": SEEDREAM, "prompt": "x", "size": "640x360", "response_format": "b64_json", "image": [reference]}
    _, answer = await caller.call("POST", "ember", "/images/generations", json=body)
    image = Image.open(io.BytesIO(base64.b64decode(answer["data"][0]["b64_json"]))).convert("RGB")
    red, green, blue = image.getpixel((80, 80))
    assert min(red, blue) > 200 > 60 > green
    status, answer = await caller.call("POST", "ember", "/images/generations", json=body | {"image": "data:,no"})
    assert (status, answer["error"]["code"]) == (400, "InvalidParameter")
    assert (await caller.lab("GET", "/ledger"))["totals"]["accepted"] == 1


async def test_moderation_of_pictures_in_both_dialects(caller):
    """Early: a 400. Late: an error item beside nothing charged on Ark, a refused request on OpenAI."""
    codes = {SEEDREAM: ("ember", "InputTextSensitiveContentDetected"), "gpt-image-1": ("dahlia", "moderation_blocked")}
    for model, (account, early) in codes.items():
        body = {"model": model, "prompt": "[moderated]", "size": "128x128"}
        status, answer = await caller.call("POST", account, "/images/generations", json=body)
        assert (status, answer["error"]["code"]) == (400, early)
    body = {"model": SEEDREAM, "prompt": "[moderated-late]", "size": "128x128"}
    status, answer = await caller.call("POST", "ember", "/images/generations", json=body)
    assert (status, answer["data"][0]["error"]["code"]) == (200, "OutputImageSensitiveContentDetected")
    status, answer = await caller.call("POST", "dahlia", "/images/generations", json=body | {"model": "gpt-image-1"})
    assert (status, answer["error"]["moderation_details"]["moderation_stage"]) == (400, "output")
    assert set((await caller.lab("GET", "/ledger"))["totals"]["charged"].values()) <= {"0.00"}


async def say(caller, **fields) -> bytes:
    body = {"model": "gpt-4o-mini-tts", "voice": "nova", **fields}
    headers = {"Authorization": f"Bearer {caller.studio.key('dahlia')}"}
    async with caller.session.post(
        f"{caller.studio.base_url('dahlia')}/audio/speech", json=body, headers=headers
    ) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.read()


def heard(sound: bytes) -> tuple[float, int]:
    """Seconds and the loudest sample of a 16-bit wav."""
    with wave.open(io.BytesIO(sound)) as file:
        samples = memoryview(file.readframes(file.getnframes())).cast("h")
        return file.getnframes() / file.getframerate(), max(map(abs, samples))


async def test_speech_is_audible_and_longer_for_more_words(caller):
    """Real speech: samples that are not silence, more of them for a longer text, fewer at a quicker pace."""
    short, loud = heard(await say(caller, input="Good morning.", response_format="wav"))
    text = "Good morning to everyone who works in this studio today."
    long, _ = heard(await say(caller, input=text, response_format="wav"))
    quick, _ = heard(await say(caller, input=text, response_format="wav", speed=2.0))
    chinese, chinese_loud = heard(await say(caller, input="早上好", response_format="wav"))
    assert 0.3 < short < quick < long < 10
    assert min(loud, chinese_loud) > 1000
    assert chinese > 0.3


@pytest.mark.parametrize("voice", sorted(VOICES))
async def test_each_of_the_eleven_voices_speaks(caller, voice):
    """A voice that is offered is there: espeak-ng knows every name that we give it."""
    seconds, loud = heard(await say(caller, input="Good morning.", voice=voice, response_format="wav"))
    assert seconds > 0.3
    assert loud > 1000


async def test_speech_in_mp3_is_charged_by_characters(caller):
    """mp3 is the default; the ledger knows the price by characters."""
    sound = await say(caller, input="x" * 100)
    assert sound[:3] == b"ID3" or sound[0] == 0xFF
    told = await caller.lab("GET", "/ledger?account=dahlia")
    assert told["submissions"][0]["charged"] == {"currency": "USD", "amount": "0.0015"}


async def test_models_lists_what_the_account_has(caller):
    """GET /v1/models names the models of that account."""
    _, answer = await caller.call("GET", "dahlia", "/models")
    assert {item["id"] for item in answer["data"]} == {"gpt-image-1", "gpt-4o-mini-tts"}


@pytest.mark.parametrize(
    "account, model, code",
    [("ember", SEEDREAM, "QuotaExceeded"), ("dahlia", "gpt-image-1", "rate_limit_exceeded")],
)
async def test_a_full_account_refuses_synchronous_work(caller, account, model, code):
    """Concurrency bounds synchronous work too, with the dialect's own 429."""
    await caller.lab("POST", f"/accounts/{account}", {"concurrency": 0})
    body = {"model": model, "prompt": "x", "size": "128x128"}
    status, answer = await caller.call("POST", account, "/images/generations", json=body)
    assert (status, answer["error"]["code"]) == (429, code)
