"""Reported usage as values: from the words of providers, and over the wire."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.cost_quote.wire.quotes import used_from_proto
from services.routing.domain.usage import COUNTS, Usage, usage_of
from services.routing.ports.prices import UsageItem
from services.routing.wire.usage import usage_from_proto, usage_request, usage_to_proto

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
COUNT = st.none() | st.integers(0, 2**53)
SECONDS = st.none() | st.decimals(0, 86_400, places=9)
USAGE = st.builds(Usage, **dict.fromkeys(COUNTS, COUNT), seconds=SECONDS)


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        ({"completion_tokens": 108_900, "total_tokens": 108_900}, Usage(output_tokens=108_900)),
        ({"seconds": 5}, Usage(seconds=Decimal(5))),
        ({"seconds": 5.04}, Usage(seconds=Decimal("5.04"))),
        ({"generated_images": 3, "output_tokens": 12}, Usage(images=3, output_tokens=12)),
        (
            {"input_tokens": 60, "input_tokens_details": {"image_tokens": 50, "text_tokens": 10}, "output_tokens": 4},
            Usage(input_tokens=60, input_image_tokens=50, output_tokens=4),
        ),
        ({"characters": 0}, Usage(characters=0)),
        ({"seconds": "5", "output_tokens": -1, "images": True, "input_tokens_details": 3}, Usage()),
        ({"final_unit_deduction": "12"}, Usage()),
    ],
)
def test_what_a_provider_reports(reported: dict[str, Any], expected: Usage) -> None:
    """SYN-11: figures of a durable job by the names that providers use; what is no figure was not reported."""
    assert usage_of(reported) == expected
    assert bool(usage_of(reported)) is (expected != Usage())


@given(USAGE)
def test_usage_crosses_the_wire_whole(usage: Usage) -> None:
    """COST-3: absent stays absent, zero stays zero, and no digit is lost on the way to cost_quote."""
    assert usage_from_proto(usage_to_proto(usage)) == usage
    [item] = usage_request([UsageItem("a", "chat", "a/x", "r", 1, usage, {"n": 2}, 7)]).items
    used = used_from_proto(item, NOON)
    assert {name: getattr(used.usage, name) for name in (*COUNTS, "seconds")} == {
        name: getattr(usage, name) for name in (*COUNTS, "seconds")
    }
    assert (used.key, used.rule, used.version, used.request, used.revision, used.at) == (
        "a", "r", 1, {"n": 2}, 7, NOON,
    )  # fmt: skip
