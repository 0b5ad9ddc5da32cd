"""A file passes its checks or is told why not; what cannot be judged is not passed."""

from dataclasses import replace

import pytest

from services.runs.domain.judging import Facts, alike, compared, judge, readers, verified
from services.runs.domain.plan import Check
from services.runs.domain.reading.production import read_plan
from tests.unit.runs.documents import episode, put

A, B = "a" * 64, "b" * 64
PICTURE = Facts(A, "image/png", 100, width=1280, height=720, fingerprint="00ff" * 8, words={"reader": "SUMMER\n Sale"})
CLIP = Facts(
    B, "video/mp4", 900, width=640, height=360, duration_s=4.04, streams=frozenset({"video", "audio"})
)  # fmt: skip


def as_read(check):
    """The check as a document's reading keeps it."""
    plan, found = read_plan(put(episode(), "/nodes/2/checks", [check]))
    assert found == []
    return plan.nodes["qc"].checks[0]


@pytest.mark.parametrize(
    "check, facts",
    [
        ("decodes", PICTURE),
        ({"min_size": "1280x720"}, PICTURE),
        ({"max_size": "1280x720"}, PICTURE),
        ({"duration": 4}, CLIP),
        ({"duration": "4s"}, CLIP),
        ({"duration": {"seconds": "3s", "tolerance_s": 1.1}}, CLIP),
        ({"duration": {"min_s": 3, "max_s": 5}}, CLIP),
        ({"duration": {"min_s": 4}}, CLIP),
        ({"hash": A}, PICTURE),
        ({"text": {"contains": "summer sale", "model": "reader"}}, PICTURE),
        ({"streams": ["video", "audio"]}, CLIP),
        ({"similar_to": {"artifact": B}}, PICTURE),
    ],
)
def test_what_is_as_asked_for_passes(check, facts):
    """GATE-1: hash, media probe, duration, likeness and text, as a document writes them."""
    assert judge(as_read(check), facts, {B: replace(PICTURE, sha256=B)}) is None


@pytest.mark.parametrize(
    "check, facts, reason",
    [
        ({"min_size": "1920x1080"}, PICTURE, "has 1280x720 pixels; at least 1920x1080"),
        ({"min_size": "1920x1080"}, Facts(A, "audio/wav", 9, duration_s=1), "has no pixels"),
        ({"max_size": "640x640"}, PICTURE, "at most 640x640"),
        ({"max_size": "640x640"}, Facts(A, "audio/wav", 9, duration_s=1), "has no pixels"),
        ({"duration": 5}, CLIP, "lasts 4.04 s; at least 4.75 s"),
        ({"duration": {"max_s": 4}}, CLIP, "lasts 4.04 s; at most 4 s"),
        ({"duration": 5}, PICTURE, "has no duration"),
        ({"hash": B}, PICTURE, "is asked for"),
        ({"text": {"contains": "winter", "model": "reader"}}, PICTURE, "reads 'summer sale'; 'winter' is asked for"),
        ({"text": {"contains": "summer", "model": "other"}}, PICTURE, "cannot be read by 'other'"),
        ({"streams": ["video", "subtitle"]}, CLIP, "holds audio, video; subtitle is asked for"),
        ({"similar_to": {"artifact": B}}, PICTURE, "is 0.50 like its reference; 0.85 is asked for"),
        ({"similar_to": {"artifact": "c" * 64}}, PICTURE, "is no picture that can be read"),
        ({"similar_to": {"artifact": B}}, CLIP, "looks at pictures"),
    ],
)
def test_what_is_not_as_asked_for_is_told(check, facts, reason):
    """GATE-1: the reason says what was found and what was asked for."""
    others = {B: replace(PICTURE, sha256=B, fingerprint="0f0f" * 8)}
    assert reason in judge(as_read(check), facts, others)


@pytest.mark.parametrize(
    "check, reason",
    [
        (Check("min_size", "large"), "cannot be judged"),
        (Check("duration", {"seconds": "soon", "tolerance_s": 0.25}), "cannot be judged"),
        (Check("similar_to", {"reference": None, "threshold": 0.5}), "cannot be compared"),
        (Check("text", {"contains": "", "model": "reader"}), "cannot be judged"),
        (Check("sharp"), "no check that is known"),
    ],
)
def test_what_cannot_be_judged_is_not_passed(check, reason):
    """GATE-1: an argument that a Run made of an expression may be anything; nothing slips through on it."""
    assert reason in judge(check, PICTURE)


@pytest.mark.parametrize(
    "facts, reason",
    [
        (PICTURE, None),
        (CLIP, None),
        (replace(PICTURE, unsound="is a broken picture"), "is a broken picture"),
        (replace(PICTURE, size_bytes=0), "is empty"),
        (replace(CLIP, duration_s=0.0), "has no duration"),
        (Facts(A, "text/plain", 5), None),
    ],
)
def test_everything_made_is_verified(facts, reason):
    """RUN-7: it exists, decodes, has bytes, and a clip lasts."""
    assert verified(facts) == reason


def test_what_must_be_looked_at_is_known_before():
    """GATE-1: readers and references are gathered first, so that judging is pure."""
    several = {"reference": [{"artifact": A}, {"artifact": B}, {"artifact": A}], "threshold": 0.9}
    checks = (Check("text", {"contains": "x", "model": "reader"}), Check("similar_to", several), Check("decodes"))
    assert readers(checks) == {"reader"}
    assert compared(checks) == (A, B)


def test_likeness_is_the_share_of_equal_bits():
    """1 for the same, 0.5 for half of the bits, 0 where nothing can be compared."""
    assert (alike("00ff", "00ff"), alike("0000", "00ff"), alike("", "")) == (1.0, 0.5, 0.0)
