"""Every part of the language of price rules, on prices that providers really ask."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from services.cost_quote.domain.parsing import RuleError, parse_rule
from services.cost_quote.domain.pricing import Priced, Unpriced, price
from services.cost_quote.domain.settling import Usage, settle

SEEDANCE: dict[str, Any] = {
    "id": "seedance", "currency": "CNY", "billing_mode": "per_second", "rate": "46",
    "rates": [
        {"when": {"resolution": "1080p", "reference_videos": {"given": True}}, "rate": "31"},
        {"when": {"reference_videos": {"given": True}}, "rate": "28"},
        {"when": {"resolution": "1080p"}, "rate": "51"},
    ],
    "video_tokens": {
        "fps": 24,
        "frames": {
            "480p": {"16:9": "864x496", "1:1": "640x640"},
            "720p": {"16:9": "1280x720", "9:16": "720x1280", "21:9": "1470x630"},
            "1080p": {"16:9": "1920x1080"},
        },
        "default_resolution": "720p",
        "input_video": {"most": "15", "floor_tokens": {"480p": 50000, "*": 150000}},
    },
    "most_units": "15",
}  # fmt: skip
H3: dict[str, Any] = {
    "id": "h3", "currency": "USD", "billing_mode": "per_second", "rate": "0.08",
    "rates": [{"when": {"resolution": "2k"}, "rate": "0.13"}],
    "surcharges": [{"field": "reference_images", "free": 5, "rate": "0.04"}],
}  # fmt: skip
RUNWAY: dict[str, Any] = {
    "id": "runway", "currency": "USD", "billing_mode": "per_second", "rate": "30",
    "rates": [{"when": {"resolution": "480p"}, "rate": "20"}, {"when": {"resolution": "1080p"}, "rate": "68"}],
    "surcharges": [{"field": "input_video_s", "rate": "15", "most": "10",
                    "when": {"reference_videos": {"given": True}}}],
    "minimum": "80", "credits": {"price": "0.01"},
}  # fmt: skip
CHAT: dict[str, Any] = {
    "id": "chat", "currency": "USD", "billing_mode": "per_token", "max_output_tokens": 1000,
    "tiers": [
        {"when": {"service_tier": "batch"}, "input_per_million": "1", "output_per_million": "4"},
        {"hours": {"from": "22:00", "to": "06:00"}, "input_per_million": "1.5", "output_per_million": "6"},
        {"up_to": 1000, "input_per_million": "2", "cached_input_per_million": "0.2", "cache_write_per_million": "2.5",
         "cache_write_long_per_million": "4", "input_audio_per_million": "6", "output_per_million": "8",
         "reasoning_per_million": "10", "output_image_per_million": "30"},
        {"input_per_million": "4", "output_per_million": "12"},
    ],
}  # fmt: skip
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)  # a Monday
NIGHT = datetime(2026, 11, 30, 23, tzinfo=UTC)


def told(spec: dict[str, Any], at: datetime | None = NOON, **request: Any) -> tuple[Decimal, str] | str:
    """(amount, kind), or the reason why there is none."""
    found = price(parse_rule(spec), request, at)
    return found.reason if isinstance(found, Unpriced) else (found.amount, found.kind)


def paid(spec: dict[str, Any], usage: Usage, at: datetime | None = NOON, **request: Any) -> tuple[Decimal, str] | str:
    """The same of what was used."""
    found = settle(parse_rule(spec), request, usage, at)
    return found.reason if isinstance(found, Unpriced) else (found.amount, found.kind)


VIDEOS = [{"url": "https://example.com/a.mp4"}]


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ({"duration_s": 1, "resolution": "720p", "ratio": "16:9"}, ("0.9936", "exact")),
        ({"duration_s": 5, "resolution": "720p", "ratio": "16:9"}, ("4.968", "exact")),
        ({"duration_s": 5, "resolution": "480p", "ratio": "1:1"}, ("2.208", "exact")),
        ({"duration_s": 5, "resolution": "1080p", "ratio": "16:9"}, ("12.3930", "exact")),
        # the largest frame, 1470x630, where the provider chooses the ratio; started tokens count
        ({"duration_s": 5, "resolution": "720p", "ratio": "adaptive"}, ("4.992288", "ceiling")),
        ({"duration_s": 5, "resolution": "720p"}, ("4.992288", "ceiling")),
        ({"duration_s": -1, "resolution": "720p", "ratio": "16:9"}, ("14.904", "ceiling")),
        # 20 s of 21,600 tokens, those of the input added
        (
            {"duration_s": 5, "ratio": "16:9", "reference_videos": VIDEOS, "input_video_s": 15},
            ("12.096", "exact"),
        ),
        ({"duration_s": 5, "ratio": "16:9", "reference_videos": VIDEOS}, ("12.096", "ceiling")),
        # 3 s are 64,800 tokens: under the floor
        ({"duration_s": 2, "ratio": "16:9", "reference_videos": VIDEOS, "input_video_s": 1}, ("4.2", "exact")),
    ],
)
def test_video_priced_by_its_tokens(request_: dict[str, Any], expected: tuple[str, str]) -> None:
    """COST-1, COST-3: width x height x fps x seconds / 1024 at a price per million that depends on resolution and on
    input video; what the provider decides makes a ceiling."""
    assert told(SEEDANCE, **request_) == (Decimal(expected[0]), expected[1])


def test_a_frame_that_is_not_known_has_no_price() -> None:
    """COST-4: neither a neighbour's pixels nor zero."""
    assert told(SEEDANCE, duration_s=5, resolution="4k") == "seedance knows no frame of resolution=4k, ratio=None"
    bare = {**SEEDANCE, "video_tokens": {**SEEDANCE["video_tokens"], "input_video": {"field": "input_video_s"}}}
    found = told(bare, duration_s=5, ratio="16:9", reference_videos=VIDEOS)
    assert found == "seedance needs input_video_s: the seconds of reference_videos"


def test_reported_tokens_settle_a_video() -> None:
    """COST-3: what the provider counted is charged, whatever the frame was."""
    assert paid(SEEDANCE, Usage(output_tokens=103_818), resolution="720p", ratio="adaptive", duration_s=5) == (
        Decimal("4.775628"), "exact",
    )  # fmt: skip
    seconds = Usage(seconds=Decimal(4))
    assert paid(SEEDANCE, seconds, resolution="720p", ratio="16:9", duration_s=-1) == (Decimal("3.9744"), "exact")
    assert paid(SEEDANCE, Usage(), resolution="720p", ratio="16:9", duration_s=-1) == (
        "the provider reported no seconds, by which seedance charges"
    )


def test_surcharges_begin_beyond_a_free_count() -> None:
    """COST-1: five pictures are free, each further one costs."""
    pictures = [{"url": "https://example.com/a.png"}] * 7
    assert told(H3, duration_s=5, reference_images=pictures[:5]) == (Decimal("0.40"), "exact")
    assert told(H3, duration_s=5, reference_images=pictures) == (Decimal("0.48"), "exact")
    assert told(H3, duration_s=5, reference_images=7, resolution="2k") == (Decimal("0.73"), "exact")


def test_credits_minimum_and_seconds_of_input_video() -> None:
    """COST-1: a minimum per task in whole credits; unsaid seconds of an input video are the most there can be."""
    assert told(RUNWAY, duration_s=2) == (Decimal("0.80"), "exact")
    assert told(RUNWAY, duration_s=5) == (Decimal("1.50"), "exact")
    assert told(RUNWAY, duration_s=5, reference_videos=VIDEOS, input_video_s=4) == (Decimal("2.10"), "exact")
    assert told(RUNWAY, duration_s=5, reference_videos=VIDEOS) == (Decimal("3.00"), "ceiling")
    assert told(RUNWAY, duration_s=Decimal("4.01")) == (Decimal("1.21"), "exact")


def test_started_units() -> None:
    """COST-1: units in started steps, at least so many, and rates for more than one unit."""
    speech = {"id": "s", "currency": "USD", "billing_mode": "per_character", "rate": "0.10", "per": 1000}
    assert told(speech, text="x" * 1001) == (Decimal("0.1001"), "exact")
    assert told({**speech, "round_up_to": 1000}, text="x" * 1001) == (Decimal("0.2"), "exact")
    clip = {"id": "c", "currency": "USD", "billing_mode": "per_second", "rate": "1", "round_up_to": 1, "least_units": 3}
    assert [told(clip, duration_s=seconds) for seconds in (1, 3.2, 4)] == [
        (Decimal(units), "exact") for units in (3, 4, 4)
    ]


def test_pictures_by_size_quality_and_pixel() -> None:
    """COST-1: flat by size and quality, by pixels, and by started megapixels, each times their number."""
    table = {"by": ["size", "quality"], "rates": {"1024x1024": {"high": "0.17", "*": "0.04"}, "*": {"*": "0.25"}}}
    flat = {"id": "f", "currency": "USD", "billing_mode": "per_image", "table": table}
    assert told(flat, size="1024x1024", quality="high", n=2) == (Decimal("0.34"), "exact")
    assert told(flat, size="1024x1024") == (Decimal("0.04"), "exact")
    assert told(flat, size="auto") == (Decimal("0.25"), "ceiling")
    pixel = {"id": "p", "currency": "USD", "billing_mode": "per_image", "unit": "pixel", "rate": "0.03", "per": 1000000}
    assert told(pixel, size="1000x500", n=2) == (Decimal("0.03"), "exact")
    assert told({**pixel, "round_up_to": 1000000}, size="1000x500", n=2) == (Decimal("0.06"), "exact")
    assert "needs size" in str(told(pixel, size="auto"))
    assert told({**pixel, "most_units": 4000000}, size="auto") == (Decimal("0.12"), "ceiling")


def test_picture_tokens_by_a_table() -> None:
    """COST-1: tokens of a picture by size and quality before the call, by what was reported after it."""
    spec = {
        "id": "g", "currency": "USD", "billing_mode": "per_token", "input_per_million": "5",
        "input_image_per_million": "8", "output_per_million": "30",
        "image_tokens": {"1024x1024": {"low": 272, "high": 4160}, "1024x1536": {"low": 408, "high": 6240}},
    }  # fmt: skip
    facts = {"input_tokens": 100, "input_image_tokens": 0}
    assert told(spec, **facts, size="1024x1024", quality="high", n=2) == (Decimal("0.2501"), "ceiling")
    assert told(spec, **facts, size="auto", quality="low") == (Decimal("0.01274"), "ceiling")
    assert told(spec, **facts) == (Decimal("0.1877"), "ceiling")
    assert "knows no picture of size=9x9" in str(told(spec, **facts, size="9x9"))
    used = Usage(input_tokens=100, input_image_tokens=40, output_tokens=4100)
    assert paid(spec, used, size="auto") == (Decimal("0.12362"), "exact")


def test_audio_number_and_service_tiers() -> None:
    """COST-1: a rate without sound, a price for each of `n`, and factors for a tier or a region."""
    spec = {
        "id": "v", "currency": "USD", "billing_mode": "per_second", "rate": "0.40", "times": "n",
        "rates": [{"when": {"generate_audio": False}, "rate": "0.20"}],
        "multipliers": [{"when": {"service_tier": ["flex", "batch"]}, "factor": "0.5"},
                        {"when": {"region": "eu"}, "factor": "1.1"}],
    }  # fmt: skip
    assert told(spec, duration_s=5) == (Decimal("2.00"), "exact")
    assert told(spec, duration_s=5, generate_audio=False, n=2) == (Decimal("2.00"), "exact")
    assert told(spec, duration_s=5, service_tier="flex", region="eu") == (Decimal("1.10"), "exact")
    assert paid(spec, Usage(images=1), duration_s=5, n=3) == (Decimal("2.00"), "exact")


OPEN = {"duration_s": 1, "resolution": "auto", "ratio": "16:9"}


@pytest.mark.parametrize(
    ("rates", "plain", "expected"),
    [
        ([({"resolution": "480p"}, "5"), ({"resolution": "720p"}, "1")], "2", "5"),
        ([({"resolution": "480p"}, "1"), ({"resolution": "720p"}, "5")], "2", "5"),
        ([({"resolution": "480p"}, "1"), ({"resolution": "720p"}, "2")], "5", "5"),
        ([({"resolution": "480p"}, "5"), ({"ratio": "16:9"}, "1")], "9", "5"),
        ([({"resolution": "480p"}, "1"), ({"ratio": "16:9"}, "5")], "9", "5"),
        ([({"resolution": "480p", "ratio": "1:1"}, "9")], "5", None),
    ],
)
def test_of_rates_that_may_come_to_hold_the_dearest_is_the_ceiling(
    rates: list[tuple[dict[str, Any], str]], plain: str, expected: str | None
) -> None:
    """COST-1: wherever it stands in the list, before the first that surely holds; what surely fails is no candidate."""
    spec = {
        "id": "r", "currency": "USD", "billing_mode": "per_second", "rate": plain,
        "rates": [{"when": when, "rate": rate} for when, rate in rates],
    }  # fmt: skip
    assert told(spec, **OPEN) == ((Decimal(expected), "ceiling") if expected else (Decimal(plain), "exact"))


@pytest.mark.parametrize(("factor", "amount"), [("3", "3"), ("0.5", "1")])
def test_a_factor_that_may_come_to_hold_never_lowers_a_ceiling(factor: str, amount: str) -> None:
    """COST-1: an uplift that is left to the provider is counted, a discount is not."""
    spec = {
        "id": "r", "currency": "USD", "billing_mode": "per_second", "rate": "1",
        "multipliers": [{"when": {"service_tier": "flex"}, "factor": factor}],
    }  # fmt: skip
    assert told(spec, duration_s=1, service_tier="auto") == (Decimal(amount), "ceiling")


@pytest.mark.parametrize(
    ("at", "factor"),
    [
        ("2026-11-30T16:29", "1"),  # Monday
        ("2026-11-30T16:30", "0.5"),
        ("2026-12-01T00:29", "0.5"),
        ("2026-12-01T00:30", "1"),
        ("2026-12-05T00:10", "0.5"),  # Saturday, in the window that began on Friday
        ("2026-12-05T17:00", "1"),
        ("2026-11-30T00:10", "1"),  # Monday, in a window that would have begun on Sunday
    ],
)
def test_hours_are_fixed_at_submission(at: str, factor: str) -> None:
    """COST-3: a window in UTC may cross midnight and belongs to the day on which it begins; its hour is the
    submission's, however long the job took."""
    hours = [{"from": "16:30", "to": "00:30", "days": ["mon", "tue", "wed", "thu", "fri"]}]
    spec = {
        "id": "v", "currency": "USD", "billing_mode": "per_second", "rate": "1",
        "multipliers": [{"hours": hours, "factor": "0.5"}],
    }  # fmt: skip
    moment = datetime.fromisoformat(at).replace(tzinfo=UTC)
    assert told(spec, at=moment, duration_s=2) == (2 * Decimal(factor), "exact")
    assert paid(spec, Usage(seconds=Decimal(2)), at=moment) == (2 * Decimal(factor), "exact")
    assert told(spec, at=None, duration_s=2) == (Decimal(2), "ceiling")


def test_no_quote_after_the_last_day() -> None:
    """COST-4: a rule that has ended quotes no more and still settles what it quoted."""
    spec = {"id": "v", "currency": "USD", "billing_mode": "per_second", "rate": "1", "until": "2026-12-01"}
    assert told(spec, at=datetime(2026, 12, 1, 23, 59, 59, tzinfo=UTC), duration_s=2) == (Decimal(2), "exact")
    after = datetime(2026, 12, 2, tzinfo=UTC)
    assert told(spec, at=after, duration_s=2) == "v ended with 2026-12-01"
    assert paid(spec, Usage(seconds=Decimal(3)), at=after) == (Decimal(3), "exact")


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (Usage(input_tokens=1000, output_tokens=100), "0.0028"),
        (Usage(input_tokens=1001, output_tokens=100), "0.005204"),
        (Usage(input_tokens=1000, cached_input_tokens=400, output_tokens=0), "0.00128"),
        (Usage(input_tokens=1000, cache_write_tokens=400, cache_write_long_tokens=100, output_tokens=0), "0.00235"),
        (Usage(input_tokens=1000, input_audio_tokens=500, output_tokens=0), "0.004"),
        (Usage(input_tokens=0, output_tokens=100, reasoning_tokens=40, output_image_tokens=10), "0.0011"),
    ],
)
def test_sorts_of_tokens(usage: Usage, expected: str) -> None:
    """COST-1: cached, written to the cache, kept long, audio, reasoning and images have prices of their own; a tier
    holds for the whole request, its end included."""
    assert paid(CHAT, usage) == (Decimal(expected), "exact")


def test_conditions_choose_among_tiers() -> None:
    """COST-1: a service tier and the hour of submission come before the tiers by context."""
    million = Usage(input_tokens=1_000_000, output_tokens=0)
    assert paid(CHAT, million, service_tier="batch") == (Decimal(1), "exact")
    assert paid(CHAT, million, at=NIGHT) == (Decimal("1.5"), "exact")
    assert paid(CHAT, million) == (Decimal(4), "exact")
    assert paid(CHAT, Usage(output_tokens=5)) == "the provider reported no input_tokens, by which chat charges"


def test_a_ceiling_of_tokens_takes_the_dearest_that_may_come() -> None:
    """COST-1: sorts of tokens that the request does not rule out, and tiers that it may stay under; facts may stand
    for the conversation."""
    assert told(CHAT, input_tokens=1000, max_output_tokens=100) == (Decimal("0.009"), "ceiling")
    ruled_out = {"input_audio_tokens": 0, "output_image_tokens": 10, "cache_write_long_tokens": 100}
    assert told(CHAT, input_tokens=1000, max_output_tokens=100, **ruled_out) == (Decimal("0.00385"), "ceiling")
    assert told(CHAT, input_tokens=1001, max_output_tokens=100) == (Decimal("0.009"), "ceiling")
    assert told(CHAT, input_tokens=0) == (Decimal("0.03"), "ceiling")
    assert told(CHAT, input_tokens=0, max_tokens=10, n=3) == (Decimal("0.0009"), "ceiling")
    long = told({**CHAT, "tiers": CHAT["tiers"][:3]}, input_tokens=1001)
    assert long == "no tier of chat holds 1001 input tokens"


def test_a_conversation_has_at_most_as_many_tokens_as_bytes() -> None:
    """COST-1: no tokeniser makes more tokens than bytes, in any script; media count as the rule says."""
    spec = {
        "id": "c", "currency": "USD", "billing_mode": "per_token", "input_per_million": "1000000",
        "output_per_million": "0", "input_image_tokens": 100,
    }  # fmt: skip
    messages = [
        {"role": "u", "content": "\u8239"},
        {
            "role": "u",
            "content": [{"type": "image_url", "image_url": {"url": "x"}}, {"type": "text", "text": "ab"}],
        },
    ]
    assert told(spec, messages=messages) == (Decimal(3 + 1 + 1 + 4 + 2 + 16 + 100), "ceiling")


def test_conditions_on_any_fact() -> None:
    """COST-1: lists, bounds, absence and facts within objects."""
    spec = {
        "id": "r", "currency": "USD", "billing_mode": "per_request", "rate": "1",
        "rates": [
            {"when": {"style": ["a", "b"], "reference_images": {"from": 2, "below": 4}}, "rate": "2"},
            {"when": {"response_format.type": "json_schema"}, "rate": "3"},
            {"when": {"tools": {"given": True}, "n": {"above": 1, "to": 3}}, "rate": "4"},
            {"when": {"voice": {"not": "plain", "given": True}}, "rate": "5"},
        ],
    }  # fmt: skip
    assert told(spec, style="a", reference_images=[1, 2]) == (Decimal(2), "exact")
    assert told(spec, style="a", reference_images=[1, 2, 3, 4]) == (Decimal(1), "exact")
    assert told(spec, style="c", reference_images=[1, 2]) == (Decimal(1), "exact")
    assert told(spec, response_format={"type": "json_schema"}) == (Decimal(3), "exact")
    assert told(spec, tools=[{}], n=3) == (Decimal(4), "exact")
    assert told(spec, tools=[], n=3) == (Decimal(1), "exact")
    assert told(spec, voice="deep") == (Decimal(5), "exact")
    assert told(spec, voice="plain") == (Decimal(1), "exact")


def test_a_band_of_a_length_that_the_provider_chooses() -> None:
    """COST-2: every band may come to be the price; the dearest is the ceiling."""
    bands = [
        {"field": "duration_s", "from": 1, "to": 5, "price": "6"},
        {"field": "duration_s", "from": 6, "to": 9, "price": "9"},
    ]
    spec = {"id": "b", "currency": "USD", "billing_mode": "per_request", "bands": bands}
    assert told(spec, duration_s=-1) == (Decimal(9), "ceiling")
    assert paid(spec, Usage(seconds=Decimal(4)), duration_s=-1) == (Decimal(6), "exact")
    assert paid(spec, Usage(seconds=Decimal("5.04")), duration_s=5) == (Decimal(6), "exact")


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"per": 0}, "per"),
        ({"rates": [{"rate": "1", "hours": {"from": "25:00", "to": "01:00"}}]}, "rates[0].hours.from"),
        ({"rates": [{"rate": "1", "hours": {"from": "1:00", "to": "2:00", "days": ["x"]}}]}, "rates[0].hours.days"),
        ({"table": {"by": ["a"], "rates": "1"}}, "table.rates"),
        ({"table": {"by": ["a"], "rates": {"x": 0.5}}}, "table.rates.x"),
        ({"surcharges": [{"field": "n"}]}, "surcharges[0].rate"),
        ({"multipliers": [{"factor": "-1"}]}, "multipliers[0].factor"),
        ({"video_tokens": {"fps": 24, "frames": {"720p": {"16:9": "wide"}}}}, "video_tokens.frames.720p.16:9"),
        ({"video_tokens": {"fps": 24}}, "video_tokens.frames"),
        ({"credits": {"price": "x"}}, "credits.price"),
        ({"until": "soon"}, "until"),
    ],
)
def test_what_is_no_part_of_a_rule_is_named(change: dict[str, Any], path: str) -> None:
    """COST-3: nonsense anywhere in a rule is refused with its path."""
    with pytest.raises(RuleError) as caught:
        parse_rule({"id": "x", "currency": "CNY", "billing_mode": "per_second", "rate": "1", **change})
    assert path in [found for found, _ in caught.value.faults]


def test_the_arithmetic_is_shown() -> None:
    """COST-3: whoever reads a quote can follow it."""
    found = price(parse_rule(RUNWAY), {"duration_s": 2}, NOON)
    assert isinstance(found, Priced)
    assert found.explanation == "2 s x 30, minimum 80 = 80 credits x 0.01"
