"""Video tasks over a real socket: real clips, the list, deletion, limits and moderation."""

import base64
import io
import re
import subprocess
from pathlib import Path

import pytest
from PIL import Image

from services.studio.media.ffmpeg import executable


def probe(path: Path) -> tuple[float, tuple[int, int], bool]:
    """Seconds, pixels and whether there is sound, as ffmpeg reads them while decoding the whole file."""
    command = [executable(), "-i", str(path), "-f", "null", "-"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    hours, minutes, seconds = re.search(r"Duration: (\d+):(\d+):([\d.]+)", told).groups()
    width, height = re.search(r"Video: h264.*?, (\d+)x(\d+)[ ,]", told).groups()
    length = int(hours) * 3600 + int(minutes) * 60 + float(seconds)
    return length, (int(width), int(height)), "Audio: aac" in told


def first_frame(path: Path) -> Image.Image:
    """The first picture of a clip."""
    told = subprocess.run(
        [executable(), "-v", "error", "-i", str(path), "-frames:v", "1", "-f", "image2pipe", "-c:v", "png", "-"],
        capture_output=True,
        check=True,
    )
    return Image.open(io.BytesIO(told.stdout)).convert("RGB")


def picture(colour: str, size: tuple[int, int] = (90, 160)) -> str:
    """A plain picture as a data URL."""
    buffer = io.BytesIO()
    Image.new("RGB", size, colour).save(buffer, "PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


async def download(caller, url: str, target: Path) -> Path:
    async with caller.session.get(url) as answer:
        assert answer.status == 200
        target.write_bytes(await answer.read())
    return target


async def test_a_created_task_ends_in_a_real_clip(caller, tmp_path):
    """create, poll, download: H.264 of the asked duration and ratio with sound; the usage counts nominal pixels."""
    status, created = await caller.create(ratio="9:16", resolution="1080p", safety_identifier="tok-1")
    assert status == 200
    task = await caller.finished("aurora", created["id"])
    assert (task["status"], task["error"], task["safety_identifier"]) == ("succeeded", None, "tok-1")
    assert (task["resolution"], task["ratio"], task["duration"]) == ("1080p", "9:16", 4)
    assert task["usage"]["completion_tokens"] == 1080 * 1920 * 24 * 4 // 1024
    seconds, (width, height), sound = probe(await download(caller, task["content"]["video_url"], tmp_path / "clip.mp4"))
    assert seconds == pytest.approx(4, abs=0.15)
    assert width / height == pytest.approx(9 / 16, abs=0.02)
    assert sound


async def test_the_clip_shows_the_given_first_frame(caller, tmp_path):
    """The first frame is what was sent, an adaptive ratio is the picture's, and the last frame comes on request."""
    content = [{"type": "image_url", "image_url": {"url": picture("#f01020")}, "role": "first_frame"}]
    _, created = await caller.create(content=content, generate_audio=False, return_last_frame=True)
    task = await caller.finished("aurora", created["id"])
    assert task["ratio"] == "9:16"
    clip = await download(caller, task["content"]["video_url"], tmp_path / "clip.mp4")
    shown = first_frame(clip)
    red, green, blue = shown.getpixel((shown.width // 2, shown.height // 3))
    assert red > 180 > 90 > max(green, blue)
    assert not probe(clip)[2]
    with Image.open(await download(caller, task["content"]["last_frame_url"], tmp_path / "last.png")) as last:
        assert last.size == shown.size


async def test_reference_materials_of_every_kind_make_a_clip(caller, tmp_path):
    """Images, a video and a sound by link: fetched, used, and the clip keeps its length."""
    _, created = await caller.create(generate_audio=True)
    made = await caller.finished("aurora", created["id"])
    link = made["content"]["video_url"]
    content = [
        {"type": "text", "text": "follow them"},
        {"type": "image_url", "image_url": {"url": picture("#20c040")}, "role": "reference_image"},
        {"type": "video_url", "video_url": {"url": link}, "role": "reference_video"},
        {"type": "audio_url", "audio_url": {"url": link}, "role": "reference_audio"},
    ]
    status, created = await caller.create(content=content, duration=5, ratio="1:1")
    assert status == 200, created
    task = await caller.finished("aurora", created["id"])
    assert task["status"] == "succeeded", task
    seconds, (width, height), sound = probe(await download(caller, task["content"]["video_url"], tmp_path / "clip.mp4"))
    assert seconds == pytest.approx(5, abs=0.15)
    assert width == height
    assert sound


async def test_unusable_materials_are_refused_at_the_door(caller):
    """What is no image, or cannot be fetched, is refused and leaves nothing in the ledger."""
    unusable = {
        "data:image/png;base64,bm8gaW1hZ2U=": "InvalidParameter",
        f"{caller.studio.url}/nothing": "InvalidImageURL.DownloadFailed",
        "ftp://example/1.png": "InvalidParameter",
    }
    for url, code in unusable.items():
        content = [{"type": "image_url", "image_url": {"url": url}, "role": "reference_image"}]
        status, body = await caller.create(content=content)
        assert (status, body["error"]["code"]) == (400, code)
    assert (await caller.lab("GET", "/ledger"))["totals"]["accepted"] == 0


async def test_the_list_filters_and_pages_newest_first(caller):
    """filter.status, filter.model and filter.task_ids narrow the list; pages count the whole."""
    await caller.lab("POST", "/accounts/aurora", {"running": 0})
    ids = [(await caller.create(safety_identifier=f"tok-{n}"))[1]["id"] for n in range(3)]
    tasks = "/contents/generations/tasks"
    _, everything = await caller.call("GET", "aurora", tasks)
    assert [item["id"] for item in everything["items"]] == ids[::-1]
    assert [item["safety_identifier"] for item in everything["items"]] == ["tok-2", "tok-1", "tok-0"]
    _, page = await caller.call("GET", "aurora", tasks, params={"page_num": 2, "page_size": 2})
    assert ([item["id"] for item in page["items"]], page["total"]) == (ids[:1], 3)
    wanted = [("filter.task_ids", ids[0]), ("filter.task_ids", ids[2]), ("filter.status", "queued")]
    _, some = await caller.call("GET", "aurora", tasks, params=wanted)
    assert {item["id"] for item in some["items"]} == {ids[0], ids[2]}
    for params in ({"filter.status": "running"}, {"filter.model": "another"}):
        assert (await caller.call("GET", "aurora", tasks, params=params))[1]["total"] == 0
    assert (await caller.call("GET", "boreal", tasks))[1]["total"] == 0


async def test_delete_cancels_the_queued_refuses_the_running_and_forgets_the_finished(caller):
    """One method, three effects, chosen by the task's state; a cancelled task costs nothing."""
    tasks = "/contents/generations/tasks/"
    await caller.lab("POST", "/accounts/aurora", {"running": 1, "render_s": 600})
    running, queued = [(await caller.create())[1]["id"] for _ in range(2)]
    await caller.task("aurora", running, lambda task: task["status"] == "running")
    assert (await caller.call("DELETE", "aurora", tasks + queued))[0] == 200
    assert (await caller.finished("aurora", queued))["status"] == "cancelled"
    assert (await caller.call("DELETE", "aurora", tasks + queued))[0] == 409
    status, body = await caller.call("DELETE", "aurora", tasks + running)
    assert (status, body["error"]["code"]) == (409, "InvalidAction.RunningTaskDeletion")
    await caller.lab("POST", "/accounts/aurora", {"render_s": 0})
    assert (await caller.finished("aurora", running))["status"] == "succeeded"
    assert (await caller.call("DELETE", "aurora", tasks + running))[0] == 200
    status, body = await caller.call("GET", "aurora", tasks + running)
    assert (status, body["error"]["code"]) == (404, "NotFound.id")
    charged = {row["provider_task_id"]: row["charged"]["amount"] for row in (await ledger(caller))["submissions"]}
    assert charged == {running: "4.00", queued: "0.00"}


async def test_an_account_that_is_full_answers_429_until_a_task_ends(caller):
    """Over its concurrency an account refuses in its own dialect, and takes work again afterwards."""
    await caller.lab("POST", "/accounts/aurora", {"concurrency": 2, "running": 0})
    first, _ = [(await caller.create())[1]["id"] for _ in range(2)]
    status, body = await caller.create()
    assert (status, body["error"]["code"], body["error"]["type"]) == (429, "QuotaExceeded", "TooManyRequests")
    assert (await caller.create("boreal"))[0] == 200
    await caller.call("DELETE", "aurora", f"/contents/generations/tasks/{first}")
    assert (await caller.create())[0] == 200
    told = await ledger(caller, "aurora")
    assert (told["totals"]["accepted"], told["refused"]["by_code"]) == (3, {"QuotaExceeded": 1})


async def ledger(caller, account: str | None = None) -> dict:
    return await caller.lab("GET", f"/ledger?account={account}" if account else "/ledger")


@pytest.mark.parametrize(
    "prompt, code",
    [
        ("[moderated] scene", "InputTextSensitiveContentDetected"),
        ("forbidden:nsfw", "InputTextSensitiveContentDetected"),
        ("[real-person]", "InputImageSensitiveContentDetected.PrivacyInformation"),
    ],
)
async def test_early_moderation_refuses_and_accepts_nothing(caller, prompt, code):
    """A marked prompt is a 400 with the provider's own code, and no job."""
    status, body = await caller.create("boreal", prompt)
    assert (status, body["error"]["code"]) == (400, code)
    assert (await ledger(caller))["totals"]["accepted"] == 0


@pytest.mark.parametrize(
    "prompt, code",
    [
        ("[moderated-late]", "OutputVideoSensitiveContentDetected"),
        ("[real-person-late]", "InputImageSensitiveContentDetected.PrivacyInformation"),
    ],
)
async def test_late_moderation_fails_the_task_in_an_http_200(caller, prompt, code):
    """The job is accepted, then fails with the code in the task, and is not charged."""
    status, created = await caller.create("boreal", prompt)
    assert status == 200
    task = await caller.finished("boreal", created["id"])
    assert (task["status"], task["error"]["code"]) == ("failed", code)
    assert (await ledger(caller))["totals"]["charged"] == {}


async def test_what_an_account_does_not_have_it_refuses(caller):
    """Wrong key, unknown model, unknown path and a body that is no JSON each have their real answer."""
    url = caller.studio.base_url("aurora") + "/contents/generations/tasks"
    async with caller.session.get(url, headers={"Authorization": "Bearer wrong"}) as answer:
        assert (answer.status, (await answer.json())["error"]["code"]) == (401, "AuthenticationError")
    status, body = await caller.create(model="unheard-of")
    assert (status, body["error"]["code"]) == (404, "InvalidEndpointOrModel.NotFound")
    assert (await caller.call("GET", "aurora", "/embeddings"))[0] == 404
    assert (await caller.call("POST", "aurora", "/contents/generations/tasks", data=b"{nonsense"))[0] == 400


async def test_the_plain_path_is_the_default_account(caller):
    """/api/v3 without a prefix is the default Ark account, with that account's key."""
    headers = {"Authorization": f"Bearer {caller.studio.key('aurora')}"}
    async with caller.session.get(f"{caller.studio.url}/api/v3/contents/generations/tasks", headers=headers) as answer:
        assert (answer.status, (await answer.json())["total"]) == (200, 0)
    headers = {"Authorization": f"Bearer {caller.studio.key('dahlia')}"}
    async with caller.session.get(f"{caller.studio.url}/v1/models", headers=headers) as answer:
        assert answer.status == 200
