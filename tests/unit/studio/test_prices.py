"""Tokens and charges."""

from decimal import Decimal

import pytest

from services.studio.domain import ledger
from services.studio.domain.accounts import Price
from services.studio.domain.jobs import ImageJob, SpeechJob, VideoJob
from services.studio.domain.prices import (
    image_charge,
    page_charge,
    speech_charge,
    token_charge,
    video_charge,
    video_tokens,
)


def video(duration_s: int = 4, resolution: str = "720p", ratio: str = "16:9") -> VideoJob:
    return VideoJob("x", duration_s, resolution, ratio, seed=1)


def test_tokens_are_pixels_times_frames_over_1024():
    """1280 x 720 x 24 / 1024 = 21,600 tokens a second."""
    assert video_tokens(video(4)) == 86_400
    assert video_tokens(video(5, "1080p", "1:1")) == 1440 * 1440 * 24 * 5 // 1024


@pytest.mark.parametrize(
    "price, amount",
    [
        (Price("CNY", "second", Decimal("1.00")), "4.00"),
        (Price("CNY", "second", Decimal("1.00"), {"720p": Decimal("0.5")}), "2.0"),
        (Price("CNY", "second", Decimal("0.10"), minimum=Decimal("3")), "3"),
        (Price("CNY", "request", Decimal("6.00")), "6.00"),
        (Price("CNY", "million_tokens", Decimal("46")), "3.9744"),
    ],
)
def test_a_clip_costs_what_its_price_says(price, amount):
    """Per second, by resolution, with a minimum, per request or by tokens."""
    assert video_charge(price, video()) == Decimal(amount)


def test_pictures_and_speech_cost_by_what_was_made():
    """Pictures by number made, nothing for none; speech by thousand characters."""
    image = ImageJob("x", 64, 64, n=3, seed=1)
    per_image = Price("CNY", "image", Decimal("0.20"), minimum=Decimal("0.30"))
    assert [image_charge(per_image, image, made) for made in (0, 1, 3)] == [
        Decimal(0),
        Decimal("0.30"),
        Decimal("0.60"),
    ]
    assert speech_charge(
        Price("USD", "thousand_characters", Decimal("0.015")), SpeechJob("x" * 200, "alloy")
    ) == Decimal("0.003")


def test_small_sums_are_written_out():
    """Three ten-millionths are digits, not an exponent."""
    row = dict.fromkeys(("id", "account", "model", "kind", "request_sha256", "client_token", "safety_identifier"), "x")
    row |= {"provider_task_id": None, "status": "succeeded", "at": 1.0, "finished_at": None, "currency": "CNY"}
    rows = [row | {"usage": None, "would_charge": amount, "charged": amount} for amount in ("0.0000001", "0.0000002")]
    assert ledger.view(rows, [])["totals"]["charged"] == {"CNY": "0.0000003"}


def test_the_ledger_counts_hidden_retries_and_sums_by_currency():
    """A token posted twice is shown; a refused POST is counted apart; amounts are summed per currency."""
    post = {"at": 1.0, "account": "a", "path": "/p", "model": "m", "request_sha256": "d", "status": 429, "code": "Q"}
    posts = [
        post | {"client_token": "t1", "fate": "accepted"},
        post | {"client_token": "t1", "fate": "refused"},
        post | {"client_token": "", "fate": "refused"},
        post | {"client_token": "", "fate": "replayed"},
    ]
    row = dict.fromkeys(("id", "account", "model", "kind", "request_sha256", "client_token", "safety_identifier"), "x")
    row |= {"provider_task_id": None, "status": "succeeded", "at": 1.0, "finished_at": None, "currency": "CNY"}
    row |= {"usage": None}
    submissions = [
        row | {"would_charge": "4.00", "charged": "4.00", "usage": '{"images": 2}'},
        row | {"would_charge": "2.50", "charged": None, "status": "abandoned", "usage": '{"images": 1}'},
    ]
    view = ledger.view(submissions, posts)
    assert view["posts"] == {"count": 4, "by_client_token": {"t1": 2}, "repeated": {"t1": 2}, "replayed": 1}
    assert (view["refused"]["count"], view["refused"]["by_code"]) == (2, {"Q": 2})
    assert (view["totals"]["would_charge"], view["totals"]["charged"]) == ({"CNY": "6.50"}, {"CNY": "4.00"})
    assert view["submissions"][1]["charged"] == {"currency": "CNY", "amount": "0.00"}
    calls = view["calls"]
    assert (calls["count"], calls["abandoned"], calls["in_flight"]) == (2, 1, 0)
    assert calls["by_kind"] == {"x": {"count": 2, "usage": {"images": 3}, "charged": {"CNY": "4.00"}}}


@pytest.mark.parametrize(
    "price, amount",
    [
        (Price("USD", "million_tokens", Decimal("1"), {"output": Decimal("4")}), "0.000018"),
        (Price("USD", "million_tokens", Decimal("1")), "0.000012"),
        (Price("USD", "million_tokens", Decimal("1"), minimum=Decimal("0.01")), "0.01"),
        (Price("USD", "request", Decimal("0.5")), "0.5"),
    ],
)
def test_tokens_cost_by_what_was_read_and_written(price, amount):
    """Ten tokens read and two written: each at its own rate, with a minimum, or flat."""
    assert token_charge(price, 10, 2) == Decimal(amount)


def test_pages_cost_by_number():
    """Three pages at two cents."""
    assert page_charge(Price("CNY", "page", Decimal("0.02")), 3) == Decimal("0.06")
