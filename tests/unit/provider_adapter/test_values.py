"""The small values: materials, media types, fields, tables, secrets, hiding."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.faults.fault import Fault
from libs.materials.sniffing import sniff
from services.provider_adapter.app.hiding import without
from services.provider_adapter.domain.fields import unknown_fields
from services.provider_adapter.domain.job import Content, Job, material_places
from services.provider_adapter.domain.media import settled_type
from services.provider_adapter.domain.table import FaultTable, Row
from services.provider_adapter.store.secrets import ReferencedSecrets


def job(**given: object) -> Job:
    """A job with that input."""
    return Job("a", "t", "video", "m", given, {"f" * 64: Content(b"png", "image/png")})


def test_materials_as_urls() -> None:
    """ERR: a URL passes, artifact and inline bytes become data URLs; what is none is named by its pointer."""
    held = job(
        first_frame={"url": "https://x.example/a"},
        reference_images=[
            {"artifact": "f" * 64},
            {"base64": base64.b64encode(b"x").decode(), "media_type": "image/gif"},
        ],
    )
    assert held.material("first_frame") == "https://x.example/a"
    assert held.material("last_frame") == ""
    assert held.materials("reference_images") == ("data:image/png;base64,cG5n", "data:image/gif;base64,eA==")
    places = [(place.pointer, place.family) for place in material_places(held.input)]
    assert places == [
        (f"/input/{name}", "image") for name in ("first_frame", "reference_images/0", "reference_images/1")
    ]
    for bad in ("text", {}, {"base64": "!"}, {"artifact": "0" * 64}):
        with pytest.raises(Fault) as caught:
            job(reference_images=[bad]).materials("reference_images")
        assert "/input/reference_images/0" in caught.value.message


@pytest.mark.parametrize(("asked", "sent"), [(4, 4), (4.0, 4), (4.01, 5), (0.2, 1), (None, None)])
def test_seconds_are_rounded_up(asked: float | None, sent: int | None) -> None:
    """COST-2: what is delivered is never shorter than what was asked."""
    assert job(duration_s=asked).seconds_up("duration_s") == sent


@pytest.mark.parametrize("bad", ["4", True, float("nan"), float("inf"), [4]])
def test_a_number_that_is_none(bad: object) -> None:
    """ERR: a wrong type is refused before anything is sent."""
    with pytest.raises(Fault):
        job(duration_s=bad).seconds_up("duration_s")


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"RIFF0000WEBPVP8 ", "image/webp"),
        (b"RIFF0000WAVEfmt ", "audio/wav"),
        (b"\x00\x00\x00\x18ftypisom", "video/mp4"),
        (b"\x00\x00\x00\x14ftypqt  ", "video/quicktime"),
        (b"ID3\x04", "audio/mpeg"),
        (b"\xff\xfb\x90\x00", "audio/mpeg"),
        (b"OggS", "audio/ogg"),
        (b"hello", ""),
    ],
)
def test_bytes_are_named_by_what_they_are(head: bytes, expected: str) -> None:
    """ERR-1: the first bytes decide, not a header."""
    assert sniff(head) == expected


def test_a_type_of_another_family_is_no_result() -> None:
    """ERR-1: a picture where a clip belongs is not a clip, whatever the header claims."""
    png = b"\x89PNG\r\n\x1a\n"
    assert settled_type(png, "video/mp4", "video") == ""
    assert settled_type(png, "application/octet-stream", "image") == "image/png"
    assert settled_type(b"raw samples", "audio/pcm; rate=24000", "audio") == "audio/pcm"
    assert settled_type(b"<html>", "video/mp4", "video") == ""
    assert settled_type(b"\x00\x00\x00\x18ftypisom", "audio/mp4", "audio") == "video/mp4"


def test_every_foreign_field_is_read_ignored_or_noticed() -> None:
    """ERR-1: nested objects and lists are looked into; what stands under an ignored or wholly read field is not."""
    document = {"id": 1, "usage": {"any": 1}, "data": [{"url": 1, "new": 2}], "extra": {"deep": 1}, "noise": {"x": 1}}
    read = frozenset({"op.id", "op.usage.*", "op.data[].url"})
    assert unknown_fields("op", document, read, frozenset({"op.noise"})) == ("op.data[].new", "op.extra")


def test_a_table_is_asked_exactly_then_by_prefix() -> None:
    """ERR-1: exact codes win over prefixes, message and status narrow; a code that the registry lacks is refused."""
    table = FaultTable(
        "p",
        (
            Row("Bad.*", "invalid_request"),
            Row("Bad.Key", "key_invalid"),
            Row("Q", "rate_limited", says="again"),
            Row("Q", "model_unavailable", status=429),
        ),
    )
    assert table.lookup("Bad.Key", "", 400) == "key_invalid"
    assert table.lookup("Bad.Other", "", 400) == "invalid_request"
    assert table.lookup("Q", "Try AGAIN", 429) == "rate_limited"
    assert table.lookup("Q", "never", 429) == "model_unavailable"
    assert table.lookup("Q", "never", 400) == ""
    with pytest.raises(ValueError, match="no_such_code"):
        FaultTable("p", (Row("x", "no_such_code"),))


def test_secrets_are_read_anew_at_every_call(tmp_path) -> None:
    """CAT-3 ERR-4: a rotation is seen at once; a problem names the reference, never a value."""
    environment = {"KEY": "one"}
    secrets = ReferencedSecrets(environment)
    assert secrets.value("env:KEY") == "one"
    environment["KEY"] = "two\n"
    assert secrets.value("env:KEY") == "two"
    file = tmp_path / "key"
    file.write_text("three\n")
    assert secrets.value(f"file:{file}") == "three"
    file.write_text("")
    for ref in ("env:NONE", f"file:{file}", "file:/nowhere", "vault:x", ""):
        assert secrets.problem(ref)
        with pytest.raises(Fault) as caught:
            secrets.value(ref)
        assert caught.value.code == "source_not_configured"


@given(st.text(min_size=12, max_size=60), st.text(max_size=40), st.text(max_size=40))
def test_no_long_passage_of_a_private_text_survives(private: str, before: str, after: str) -> None:
    """ERR-4: whatever surrounds it, twelve characters in a row of a prompt are not repeated."""
    hidden = without(before + private + after, [private])
    assert private not in hidden
