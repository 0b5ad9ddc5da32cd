"""The OpenAI dialect: requests, errors and the list of models."""

import pytest

from services.studio.dialects import openai, openai_chat
from services.studio.domain.refusals import Reason, Refusal
from services.studio.routes.door import DIALECTS
from services.studio.settings import StudioConfig

DAHLIA = StudioConfig.default().accounts["dahlia"]
IMAGE = DAHLIA.models["gpt-image-1"]
SPEECH = DAHLIA.models["gpt-4o-mini-tts"]
CHAT = StudioConfig.default().accounts["lumen"].models["gpt-4o-mini"]


def test_pictures_default_to_one_square_png_in_base64():
    """What is left out takes the provider's default."""
    job = openai.read_image({"prompt": "x"}, IMAGE)
    assert (job.width, job.height, job.n, job.encoding, job.as_url) == (1024, 1024, 1, "png", False)


@pytest.mark.parametrize("field, value", [("n", 0), ("n", 99), ("size", "wide"), ("output_format", "bmp")])
def test_a_bad_picture_request_names_its_parameter(field, value):
    """A wrong value is invalid_value with the parameter's name."""
    with pytest.raises(Refusal) as caught:
        openai.read_image({"prompt": "x", field: value}, IMAGE)
    status, body = openai.refuse(caught.value, "r")
    assert (status, body["error"]["code"], body["error"]["param"]) == (400, "invalid_value", field)


@pytest.mark.parametrize(
    "body, param",
    [
        ({}, "input"),
        ({"input": "x" * 5000}, "input"),
        ({"input": "x", "voice": "bob"}, "voice"),
        ({"input": "x", "response_format": "flac"}, "response_format"),
    ],
)
def test_a_bad_speech_request_names_its_parameter(body, param):
    """Missing, too long or unknown values are refused by name."""
    with pytest.raises(Refusal) as caught:
        openai.read_speech(body, SPEECH)
    assert caught.value.param == param


@pytest.mark.parametrize("name, value, nothing", [
    ("logprobs", True, False), ("top_logprobs", 2, 0), ("logit_bias", {"9": 5}, {}),
    ("verbosity", "low", "medium"), ("modalities", ["text", "audio"], ["text"]),
    ("functions", [{"name": "f"}], []), ("web_search_options", {}, None),
])  # fmt: skip
def test_what_a_chat_would_ignore_is_refused_by_name(name, value, nothing):
    """A field that would change the answer and is not built is unsupported_parameter; asking for nothing passes."""
    asked = {"messages": [{"role": "user", "content": "hi"}]}
    with pytest.raises(Refusal) as caught:
        openai_chat.read_chat({**asked, name: value}, CHAT)
    assert (caught.value.param, caught.value.code) == (name, "unsupported_parameter")
    assert openai_chat.read_chat({**asked, name: nothing}, CHAT).max_tokens > 0


def test_moderation_is_told_by_code_and_stage():
    """moderation_blocked carries the stage; the type alone is shared with broken pictures."""
    for reason, stage in ((Reason.CONTENT_INPUT, "input"), (Reason.CONTENT_OUTPUT, "output")):
        error = openai.refuse(Refusal(reason, ""), "r")[1]["error"]
        assert (error["code"], error["moderation_details"]["moderation_stage"]) == ("moderation_blocked", stage)
    unreadable = openai.refuse(Refusal(Reason.MATERIAL_UNREADABLE, "no image"), "r")[1]["error"]
    assert (unreadable["type"], unreadable["code"]) == ("image_generation_user_error", "invalid_image_file")


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_every_reason_has_a_code_in_every_dialect(dialect):
    """No refusal is without a wording: each dialect maps every reason."""
    assert set(dialect.CODES) == set(Reason)
    for status in (400, 401, 403, 404, 418, 429, 500, 503):
        told = dialect.scripted(status, "", "", "r")
        said = told.get("error") or told.get("base_resp") or told
        assert any(said.get(name) for name in ("code", "error_type", "status_code", "title"))
