"""Requests at the door."""

from dataclasses import replace

import pytest

from libs.faults.fault import Fault
from services.routing.domain.admission import admit, validate_request
from services.routing.domain.catalog import Catalog, Kind, Model, Tenant
from services.routing.domain.request import Request
from services.routing.domain.request_facts import billing_mode, normalised
from tests.unit.routing.selection_inputs import materials

LIMITS = {
    "inputs": {"reference_images": 9, "reference_videos": 3},
    "duration_s": {"min": 4, "max": 15},
    "resolutions": ["720p"],
}
VIDEO = Model("clip", 1, Kind.VIDEO, "stable", limits=LIMITS, enabled=True, published=True)
CATALOG = Catalog(
    revision=1,
    models={"clip": VIDEO, "closed": replace(VIDEO, id="closed", published=False)},
    tenants={"narrow": Tenant("narrow", 1, models=("other",)), "wide": Tenant("wide", 1)},
)
GOOD = {"prompt": "a lighthouse", "duration_s": 5}


def ask(**fields) -> Request:
    """A request for `clip`."""
    return Request(**({"tenant": "default", "model": "clip", "input": GOOD} | fields))


def errors(model: Model, given, **options) -> dict[str, str]:
    """Pointer -> reason of the refusal; empty if admitted."""
    try:
        validate_request(model, ask(input=given, **options))
    except Fault as fault:
        return {error.pointer: error.reason for error in fault.errors}
    return {}


@pytest.mark.parametrize("tenant", ["default", "wide", "nobody-named"])
def test_a_published_model_is_open_to_whom_it_is_not_closed(tenant):
    """SEL-1: a tenant that the catalogue does not name, or names with `*`, may use it."""
    assert admit(CATALOG, ask(tenant=tenant)) is VIDEO


@pytest.mark.parametrize(
    "fields, code",
    [
        ({"tenant": "narrow"}, "forbidden"),
        ({"model": "closed"}, "model_not_published"),
        ({"model": "unknown"}, "model_not_published"),
        ({"input": {}}, "validation_failed"),
    ],
)
def test_what_may_not_be_is_refused_by_its_code(fields, code):
    """SEL-1, SEL-2, CAT-3: permission, publication, parameters."""
    with pytest.raises(Fault) as refusal:
        admit(CATALOG, ask(**fields))
    assert (refusal.value.code, refusal.value.retryable) == (code, False)


@pytest.mark.parametrize(
    "given, pointer, reason",
    [
        ({"duration_s": 20}, "/input/duration_s", "needs 20 s, the model admits 4-15 s"),
        ({"duration_s": 3.5}, "/input/duration_s", "needs 3.5 s, the model admits 4-15 s"),
        ({"duration_s": "5"}, "/input/duration_s", "must be a number of seconds above 0"),
        ({"duration_s": True}, "/input/duration_s", "must be a number of seconds above 0"),
        ({"resolution": "1080p"}, "/input/resolution", "needs resolution 1080p, the model admits 720p"),
        ({"reference_videos": materials(4)}, "/input/reference_videos", "needs 4 videos, the model admits 3"),
        ({"reference_audios": materials(1)}, "/input/reference_audios", "needs 1 audios, the model admits 0"),
        ({"reference_images": {}}, "/input/reference_images", "must be a list of materials"),
        ({"reference_images": [{"url": "x"}]}, "/input/reference_images/0/url", "must be an http or https address"),
        ({"first_frame": {}}, "/input/first_frame", "must name either url or artifact"),
        ({"first_frame": {"artifact": "x"}}, "/input/first_frame/artifact", "must be a SHA-256"),
        ({"first_frame": {"base64": "x"}}, "/input/first_frame/base64", "must have become an artifact"),
        ({"first_frame": {"url": "https://a/b", "artifact": "0" * 64}}, "/input/first_frame", "must name either"),
        ({"seed": 1.5}, "/input/seed", "must be a whole number"),
        ({"real_person": "yes"}, "/input/real_person", "must be true or false"),
        ({"prompt": 7}, "/input/prompt", "must be a text"),
        ({"promt": "x"}, "/input/promt", "is not a field of video input"),
        ({"a/b~c": 1}, "/input/a~1b~0c", "is not a field of video input"),
        ({"prompt": "a\0b"}, "/input/prompt", "holds a NUL character"),
        ({"first_frame": {"url": "https://a/\0"}}, "/input/first_frame/url", "holds a NUL character"),
    ],
)
def test_a_field_that_is_not_acceptable_is_named(given, pointer, reason):
    """SEL-2, EDG-1: a JSON pointer and a reason for every fault."""
    assert reason in errors(VIDEO, {**GOOD, **given})[pointer]


def test_all_faults_are_named_at_once():
    """EDG-1: not the first one only."""
    found = errors(VIDEO, {"promt": "x", "seed": "y", "duration_s": -1}, billing_mode="free", priority="urgent")
    assert set(found) == {
        "/input/promt",
        "/input/seed",
        "/input/duration_s",
        "/input/prompt",
        "/options/billing_mode",
        "/options/priority",
    }


def test_limits_are_named_beside_faults_of_shape():
    """EDG-1: one answer names unknown fields, wrong types and values beyond the model's limits together."""
    given = {"promt": "x", "colour": "y", "duration_s": 77, "resolution": "9p", "ratio": 3, "first_frame": {}}
    found = errors(VIDEO, {**given, "reference_videos": materials(4)})
    assert set(found) == {
        "/input/promt",
        "/input/colour",
        "/input/duration_s",
        "/input/resolution",
        "/input/ratio",
        "/input/first_frame",
        "/input/reference_videos",
    }
    assert "its fields are prompt, reference_images, " in found["/input/promt"]
    assert found["/input/colour"] == "is not a field of video input"


@pytest.mark.parametrize(
    "kind, good, missing",
    [
        (Kind.VIDEO, {"first_frame": {"artifact": "0" * 64}}, "/input/prompt"),
        (Kind.IMAGE, {"prompt": "p", "size": "1280x720", "n": 2.0, "seed": 1}, "/input/prompt"),
        (Kind.CHAT, {"messages": [{"role": "user", "content": "hi"}], "temperature": 0.5}, "/input/messages"),
        (Kind.EMBEDDING, {"input": ["a", "b"], "dimensions": 256}, "/input/input"),
        (Kind.OCR, {"image": {"url": "https://a/b"}, "task": "recognize_text"}, "/input/image"),
        (Kind.SPEECH, {"text": "hello", "voice": "alloy", "format": "opus", "speed": 0.25}, "/input/text"),
    ],
)
def test_each_kind_has_its_fields(kind, good, missing):
    """SEL-2: what the contract names is admitted, what it needs is asked for."""
    model = Model("m", 1, kind, "p")
    assert errors(model, good) == {}
    assert missing in errors(model, {})


@pytest.mark.parametrize(
    "kind, limits, given, pointer",
    [
        (Kind.IMAGE, {"n_max": 2}, {"prompt": "p", "n": 3}, "/input/n"),
        (Kind.IMAGE, {"sizes": ["1x1"]}, {"prompt": "p", "size": "2x2"}, "/input/size"),
        (Kind.SPEECH, {"max_characters": 3}, {"text": "four"}, "/input/text"),
        (Kind.SPEECH, {"voices": ["alloy"]}, {"text": "t", "voice": "echo"}, "/input/voice"),
        (Kind.SPEECH, {"formats": ["mp3", "wav"]}, {"text": "t", "format": "flac"}, "/input/format"),
        (Kind.SPEECH, {"features": []}, {"text": "t", "speed": 1.5}, "/input/speed"),
        (Kind.EMBEDDING, {"max_batch": 1}, {"input": ["a", "b"]}, "/input/input"),
        (Kind.EMBEDDING, {"dimensions": [256]}, {"input": "a", "dimensions": 512}, "/input/dimensions"),
        (Kind.OCR, {"tasks": ["recognize_text"]}, {"image": {"url": "https://a/b"}, "task": "x"}, "/input/task"),
        (Kind.CHAT, {"max_output_tokens": 10}, {"messages": [{"role": "u"}], "max_tokens": 11}, "/input/max_tokens"),
        (
            Kind.CHAT,
            {"max_output_tokens": 10},
            {"messages": [{"role": "u"}], "max_completion_tokens": 11},
            "/input/max_c",
        ),
        (Kind.CHAT, {"features": []}, {"messages": [{"role": "u"}], "tools": [{}]}, "/input/tools"),
    ],
)
def test_limits_of_the_other_kinds(kind, limits, given, pointer):
    """SEL-2: every field of the contract's capabilities limits its kind."""
    found = errors(Model("m", 1, kind, "p", limits=limits), given)
    assert any(name.startswith(pointer) for name in found)


def test_the_billing_mode_of_each_kind():
    """COST-1: video means per_second unless per_request is asked for."""
    assert billing_mode(Kind.VIDEO, "") == "per_second"
    assert billing_mode(Kind.VIDEO, "per_request") == "per_request"
    assert {billing_mode(kind, "") for kind in Kind} == {
        "per_second",
        "per_image",
        "per_token",
        "per_page",
        "per_character",
    }


def test_normalising_twice_is_normalising_once():
    """SEL-2: whole floats of the wire are integers again, defaults are said, and a second pass changes nothing."""
    given = {"prompt": "p", "duration_s": 5.0, "seed": None, "reference_images": [{"url": "u", "weight": 1.0}]}
    once = normalised(Kind.VIDEO, {}, given)
    assert once == {"prompt": "p", "duration_s": 5, "reference_images": [{"url": "u", "weight": 1}]}
    assert normalised(Kind.VIDEO, {}, once) == once
    assert normalised(Kind.IMAGE, {}, {"prompt": "p"})["n"] == 1
