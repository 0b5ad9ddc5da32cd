"""The Ark dialect: what a model takes and refuses, and how a task reads."""

import dataclasses

import pytest

from services.studio.dialects import ark
from services.studio.domain.jobs import Failure, Task
from services.studio.domain.refusals import Reason, Refusal
from services.studio.settings import StudioConfig

ACCOUNTS = StudioConfig.default().accounts
FULL = ACCOUNTS["aurora"].models["doubao-seedance-2-0-260128"]
IMAGES_ONLY = ACCOUNTS["cirrus"].models["doubao-seedance-1-5-pro-251215"]
SEEDREAM = ACCOUNTS["ember"].models["doubao-seedream-4-0-250828"]
TEXT = {"type": "text", "text": "a storm"}


def material(kind: str, role: str | None = None, url: str = "http://x/1") -> dict:
    item = {"type": kind, kind: {"url": url}}
    return item | ({"role": role} if role else {})


IMAGE = material("image_url", "reference_image")
VIDEO = material("video_url", "reference_video")
AUDIO = material("audio_url", "reference_audio")


def test_a_request_becomes_a_job_with_the_providers_defaults():
    """What is left out takes Ark's own default: 5 s, 720p, adaptive ratio, sound on."""
    job = ark.read_video({"content": [TEXT, material("image_url")]}, FULL)
    assert (job.prompt, job.duration_s, job.resolution, job.ratio, job.audio) == (
        "a storm",
        5,
        "720p",
        "adaptive",
        True,
    )
    assert job.first_frame == "http://x/1"


@pytest.mark.parametrize(
    "model, content",
    [
        (IMAGES_ONLY, [TEXT, IMAGE, VIDEO]),
        (IMAGES_ONLY, [TEXT, IMAGE, AUDIO]),
        (FULL, [TEXT, *[IMAGE] * 10]),
        (FULL, [TEXT, *[VIDEO] * 4]),
        (FULL, [TEXT, IMAGE, *[AUDIO] * 4]),
        (FULL, [TEXT, AUDIO]),
        (FULL, [TEXT, material("image_url", "first_frame"), IMAGE]),
        (FULL, [TEXT, material("image_url", "last_frame")]),
        (FULL, [TEXT, {"type": "hologram"}]),
        (FULL, [TEXT, material("image_url", "reference_video")]),
    ],
)
def test_materials_beyond_the_model_are_an_invalid_parameter(model, content):
    """A model refuses materials that it cannot take with InvalidParameter, the code that real accounts answer."""
    with pytest.raises(Refusal) as caught:
        ark.read_video({"content": content}, model)
    status, body = ark.refuse(caught.value, "02X")
    assert (status, body["error"]["code"], body["error"]["param"]) == (400, "InvalidParameter", "content")


def test_a_model_takes_all_that_it_says_it_takes():
    """Nine images, three videos and three audios together are the 933 profile."""
    job = ark.read_video({"content": [TEXT, *[IMAGE] * 9, *[VIDEO] * 3, *[AUDIO] * 3]}, FULL)
    assert (len(job.reference_images), len(job.reference_videos), len(job.reference_audios)) == (9, 3, 3)
    assert len(ark.read_video({"content": [TEXT, *[IMAGE] * 9]}, IMAGES_ONLY).reference_images) == 9


@pytest.mark.parametrize(
    "field, value",
    [("duration", 3), ("duration", 16), ("duration", "5"), ("resolution", "8k"), ("ratio", "2:1"), ("seed", -2)],
)
def test_a_bad_parameter_is_named(field, value):
    """The error says which parameter was wrong."""
    with pytest.raises(Refusal) as caught:
        ark.read_video({"content": [TEXT], field: value}, FULL)
    assert caught.value.reason is Reason.PARAMETER_INVALID
    assert caught.value.param == field


def test_an_empty_request_is_a_missing_parameter():
    """No content is MissingParameter."""
    with pytest.raises(Refusal) as caught:
        ark.read_video({}, FULL)
    assert ark.refuse(caught.value, "02X")[1]["error"]["code"] == "MissingParameter"


def test_a_failed_task_reads_as_failed_with_its_error():
    """The task of GET carries status, error and the echoed safety identifier; content and usage only on success."""
    job = ark.read_video({"content": [TEXT], "ratio": "16:9", "safety_identifier": "tok"}, FULL)
    task = Task("cgt-1", "aurora", FULL.id, "failed", job, 1.5, 2.5, error=Failure("OutputVideoSensitive", "no"))
    view = ark.task_view(task, lambda name: f"http://s/{name}")
    assert view["error"] == {"code": "OutputVideoSensitive", "message": "no"}
    assert view["safety_identifier"] == "tok"
    assert "content" not in view
    assert "usage" not in view
    done = dataclasses.replace(
        task, status="succeeded", error=None, files={"video": "a.mp4"}, usage={"total_tokens": 5}
    )
    view = ark.task_view(done, lambda name: f"http://s/{name}")
    assert (view["content"], view["error"]) == ({"video_url": "http://s/a.mp4"}, None)


def test_the_error_envelope_ends_with_the_request_id():
    """{error: {code, message, param, type}}, with the request id at the end of the message."""
    status, body = ark.refuse(Refusal(Reason.CONTENT_INPUT, ""), "02ABC")
    assert status == 400
    assert set(body["error"]) == {"code", "message", "param", "type"}
    assert body["error"]["code"] == "InputTextSensitiveContentDetected"
    assert body["error"]["message"].endswith("Request id: 02ABC")


def test_seedream_sizes_and_sets():
    """A size is 1K, 2K, 4K or WxH; a set is asked for by sequential_image_generation."""
    single = ark.read_image({"prompt": "x", "size": "1280x720"}, SEEDREAM)
    assert (single.width, single.height, single.n, single.as_url) == (1280, 720, 1, True)
    many = {"sequential_image_generation": "auto", "sequential_image_generation_options": {"max_images": 3}}
    assert ark.read_image({"prompt": "x", **many, "response_format": "b64_json"}, SEEDREAM).n == 3
    for size in ("9999x10", "huge", 5):
        with pytest.raises(Refusal):
            ark.read_image({"prompt": "x", "size": size}, SEEDREAM)


def test_a_moderated_picture_of_a_set_is_not_counted():
    """usage.generated_images counts the pictures that were made."""
    job = ark.read_image({"prompt": "x", "size": "1K"}, SEEDREAM)
    view = ark.image_view(SEEDREAM.id, 1, job, [{"url": "u"}, {"error": {"code": "c", "message": "m"}}])
    assert view["usage"]["generated_images"] == 1
