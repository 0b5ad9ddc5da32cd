"""Regression sets and their judgement, as values."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.materials.limits import Measures
from services.routing.domain.capability import misfits
from services.routing.domain.catalog import Kind
from services.routing.domain.catalog_file import read_file
from services.routing.domain.input_shape import complaints
from services.routing.domain.regression import answer_shortcomings, set_of, shortcomings
from services.routing.domain.request_facts import facts_of
from services.routing.domain.verification import (
    Trial,
    Verification,
    VerificationState,
    evidence_words,
    lacking_evidence,
)
from tests.unit.routing.catalog_market import edited
from tests.unit.routing.dispatch_offers import supply

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
DIGEST = "a" * 64
CLIP = Measures("video/mp4", 5000, 1280, 720, 4.0)

choices = st.lists(st.sampled_from(["480p", "720p", "1080p"]), unique=True)
bounds = st.tuples(st.integers(1, 10), st.integers(0, 10)).map(lambda pair: {"min": pair[0], "max": pair[0] + pair[1]})
VIDEO = st.fixed_dictionaries(
    {},
    optional={
        "resolutions": choices,
        "ratios": st.lists(st.sampled_from(["16:9", "9:16", "1:1"]), unique=True),
        "duration_s": bounds,
        "inputs": st.dictionaries(st.sampled_from(["reference_images", "reference_videos"]), st.integers(0, 9)),
        "features": st.lists(st.sampled_from(["first_frame", "last_frame", "seed"]), unique=True),
    },
)
IMAGE = st.fixed_dictionaries(
    {},
    optional={
        "sizes": st.lists(st.sampled_from(["1024x1024", "1280x720", "2k"]), unique=True),
        "n_max": st.integers(1, 4),
        "inputs": st.dictionaries(st.just("reference_images"), st.integers(0, 9)),
    },
)
SPEECH = st.fixed_dictionaries(
    {}, optional={"voices": st.lists(st.just("alloy")), "max_characters": st.integers(1, 40)}
)


def sent(value: Any) -> Any:
    """An input with a digest where the set asks for our picture."""
    if isinstance(value, dict):
        return {name: DIGEST if name == "artifact" else sent(item) for name, item in value.items()}
    return [sent(item) for item in value] if isinstance(value, list) else value


@given(
    st.one_of(
        st.tuples(st.just(Kind.VIDEO), VIDEO),
        st.tuples(st.just(Kind.IMAGE), IMAGE),
        st.tuples(st.just(Kind.SPEECH), SPEECH),
    )
)
def test_the_usual_set_is_within_what_a_supply_says(offer: tuple[Kind, dict[str, Any]]) -> None:
    """CAT-7: whatever a supply declares, its usual set asks for nothing that it does not admit, and has checks."""
    kind, capabilities = offer
    cases = set_of(supply("a/x", kind=kind, capabilities=capabilities), ())
    assert cases
    assert len({case.name for case in cases}) == len(cases)
    for case in cases:
        assert complaints(kind, sent(case.input)) == []
        assert misfits(capabilities, facts_of(kind, case.input)) == []
        assert case.expect["family"]
        assert shortcomings(case.expect, [])


def test_pictures_are_tried_where_they_are_taken() -> None:
    """CAT-7: the set has a request for each way in which a supply takes pictures."""
    declared = {"inputs": {"reference_images": 9}, "features": ["first_frame"], "duration_s": {"min": 4, "max": 15}}
    cases = set_of(supply("a/x", capabilities=declared), ())
    assert [case.name for case in cases] == ["words", "reference_images", "first_frame"]
    assert {case.input["duration_s"] for case in cases} == {4}


EMBEDDING = st.fixed_dictionaries(
    {}, optional={"dimensions": st.one_of(st.just(256), st.just([512, 256])), "max_batch": st.integers(1, 9)}
)
OCR = st.fixed_dictionaries({}, optional={"tasks": st.lists(st.just("recognize_text"))})


@given(
    st.one_of(
        st.tuples(st.just(Kind.EMBEDDING), EMBEDDING),
        st.tuples(st.just(Kind.OCR), OCR),
        st.tuples(st.just(Kind.CHAT), st.just({"max_output_tokens": 10, "features": []})),
    )
)
def test_answers_are_asked_for_within_what_a_supply_says(offer: tuple[Kind, dict[str, Any]]) -> None:
    """CAT-7: words, vectors and signs are asked for as the supply admits them, and an empty answer never passes."""
    kind, capabilities = offer
    (case,) = set_of(supply("a/x", kind=kind, capabilities=capabilities), ())
    assert complaints(kind, sent(case.input)) == []
    assert misfits(capabilities, facts_of(kind, case.input)) == []
    assert answer_shortcomings(kind, case.expect, {})


@pytest.mark.parametrize(
    "kind, expect, output, reason",
    [
        (Kind.CHAT, {}, {"choices": [{"message": {"content": "  "}}]}, "has 0 characters"),
        (Kind.CHAT, {"contains": "blue"}, {"choices": [{"message": {"content": "Red."}}]}, "does not say 'blue'"),
        (Kind.OCR, {"contains": "42"}, {"text": "POINTSMAN"}, "does not say '42'"),
        (Kind.EMBEDDING, {"vectors": 2}, {"data": [{"embedding": [0.5]}]}, "gave 1 vectors, 2 are wanted"),
        (Kind.EMBEDDING, {"dimensions": 2}, {"data": [{"embedding": [0.5]}]}, "vectors of 1 numbers, not 2"),
        (Kind.EMBEDDING, {}, {"data": [{"embedding": []}]}, "vectors of 0 numbers"),
    ],
)
def test_what_an_answer_lacks_is_told(kind: Kind, expect: Any, output: Any, reason: str) -> None:
    """CAT-7: words, signs and vectors are read in the normalised shapes."""
    assert reason in " ".join(answer_shortcomings(kind, expect, output))


def test_an_answer_as_expected_lacks_nothing() -> None:
    """CAT-7: words in whatever case, and as many vectors of as many numbers as were asked for."""
    said = {"choices": [{"message": {"content": "BLUE"}}]}
    assert answer_shortcomings(Kind.CHAT, {"contains": "blue", "min_characters": 4}, said) == []
    vectors = {"data": [{"embedding": [0.5, 1]}, {"embedding": [1, 0.5]}]}
    assert answer_shortcomings(Kind.EMBEDDING, {"vectors": 2, "dimensions": 2}, vectors) == []


def test_a_supplys_own_set_stands_for_the_usual_one() -> None:
    """CAT-7: what the catalogue declares is run as it is declared."""
    own = [{"name": "night", "input": {"prompt": "night"}, "expect": {"family": "video", "width": 1280}}]
    (case,) = set_of(supply("a/x"), own)
    assert (case.name, case.input, case.expect) == ("night", {"prompt": "night"}, {"family": "video", "width": 1280})


@pytest.mark.parametrize(
    "expect, seen, reason",
    [
        ({"family": "image"}, CLIP, "is video/mp4, not image"),
        ({"min_bytes": 6000}, CLIP, "has 5000 bytes"),
        ({"width": 1920}, CLIP, "width of 1280, not 1920"),
        ({"height": 1080}, CLIP, "height of 720, not 1080"),
        ({"ratio": "1:1"}, CLIP, "is 1280x720, not 1:1"),
        ({"duration_s": {"min": 5}}, CLIP, "lasts 4.00 s"),
        ({"duration_s": {"max": 3}}, CLIP, "lasts 4.00 s"),
        ({"ratio": "16:9"}, Measures("audio/wav", 10), "is 0x0, not 16:9"),
    ],
)
def test_what_a_file_lacks_is_told(expect: dict[str, Any], seen: Measures, reason: str) -> None:
    """CAT-7: type, size, sides, ratio and duration of every file are checked, and each shortcoming is named."""
    (told,) = shortcomings(expect, [seen])
    assert reason in told
    assert shortcomings({**expect, "artifacts": 2}, [seen])[0] == "gave 1 files, 2 are wanted"


def test_a_file_as_expected_lacks_nothing() -> None:
    """CAT-7: small differences that providers make are no shortcoming."""
    expect = {"family": "video", "width": 1280, "height": 714, "ratio": "16:9", "duration_s": {"min": 3.5, "max": 5.5}}
    assert shortcomings(expect, [CLIP, CLIP]) == []


@pytest.mark.parametrize(
    "change, lacking",
    [
        ({}, ""),
        ({"capability_version": 2}, "has that of capability version 1, the supply is at 2"),
        ({"upstream_model": "other"}, "has that of upstream model 'clip-1'"),
        ({"evidence": "waived", "capability_version": 9}, ""),
    ],
)
def test_evidence_is_about_what_the_supply_is(change: dict[str, Any], lacking: str) -> None:
    """CAT-7: a passed verification is evidence for its capability version and upstream model alone."""
    trials = (Trial("words", "t", {}, {}, VerificationState.PASSED),)
    passed = Verification("v", "a/x", "clip-1", 1, NOW).settled(trials, NOW)
    assert passed.state is VerificationState.PASSED
    assert lacking_evidence(supply("a/x", **change), passed) == lacking
    assert lacking_evidence(supply("a/x"), None) == "has none"
    assert evidence_words(supply("a/x"), passed) == "verified 2026-11-30 12:00 UTC, capability version 1"
    assert evidence_words(supply("a/x"), None) == "none"


def test_one_failed_request_fails_the_set() -> None:
    """CAT-7: a verification passes with all its requests, and its failure says which and why."""
    good = Trial("words", "t", {}, {}, VerificationState.PASSED)
    bad = replace(good, name="frame", state=VerificationState.FAILED, reasons=("lasts 1 s",))
    running = replace(good, state=VerificationState.RUNNING)
    begun = Verification("v", "a/x", "clip-1", 1, NOW)
    assert begun.settled((good, running), NOW).state is VerificationState.RUNNING
    failed = begun.settled((good, bad), NOW)
    assert lacking_evidence(supply("a/x"), failed) == "failed its verification (frame: lasts 1 s)"


@pytest.mark.parametrize(
    "own, path, reason",
    [
        ([{"name": "a"}], "supplies[0].regression[0].input", "is required"),
        ([{"name": "a", "input": {"size": "1x1"}}], "supplies[0].regression[0].input.size", "is not a field of video"),
        ([{"name": "a", "input": {"prompt": "x"}}] * 2, "supplies[0].regression[1].name", "is there twice"),
        (
            [{"name": "a", "input": {"prompt": "x"}, "expect": {"ratio": "wide"}}],
            "supplies[0].regression[0].expect.ratio",
            "must be WIDTH:HEIGHT",
        ),
        (
            [{"name": "a", "input": {"prompt": "x"}, "expect": {"colour": 1}}],
            "supplies[0].regression[0].expect.colour",
            "is not a known field",
        ),
        (
            [{"name": "a", "input": {"prompt": "x"}, "expect": {"duration_s": {"min": 5, "max": 4}}}],
            "supplies[0].regression[0].expect.duration_s.max",
            "must not be below min",
        ),
        ([{"name": str(n), "input": {"prompt": "x"}} for n in range(21)], "supplies[0].regression", "at most 20"),
    ],
)
def test_a_bad_set_is_a_fault_of_the_file(own: Any, path: str, reason: str) -> None:
    """CAT-7: a supply's own set is checked with the catalogue, by path."""
    faults = read_file(edited(lambda value: value["supplies"][0].update(regression=own))).faults
    assert any(place == path and reason in words for place, words in faults), faults


def test_a_good_set_is_none() -> None:
    """CAT-7: our picture may be asked for by its word, and other kinds have no set."""
    own = [{"name": "a", "input": {"first_frame": {"artifact": "picture"}}, "expect": {"family": "video"}}]
    assert read_file(edited(lambda value: value["supplies"][0].update(regression=own))).faults == ()
    read = [{"name": "a", "input": {"image": {"artifact": "sign"}}, "expect": {"contains": "42", "min_characters": 2}}]
    changed = {"kind": "ocr", "capabilities": {}, "regression": read}
    faults = read_file(edited(lambda value: value["supplies"][0].update(changed))).faults
    assert not [path for path, _ in faults if "regression" in path]
