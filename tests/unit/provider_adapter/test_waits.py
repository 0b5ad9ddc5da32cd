"""How long a provider asks us to wait."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.provider_adapter.domain.waits import LONGEST_MS, retry_after_ms

NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "text", "expected"),
    [
        ({}, "", None),
        ({"retry-after": "7"}, "", 7000),
        ({"retry-after": "1.5"}, "", 1500),
        ({"retry-after": "2", "retry-after-ms": "1400"}, "", 1400),
        ({"retry-after": "Mon, 30 Nov 2026 12:00:30 GMT"}, "", 30_000),
        ({"retry-after": "Mon, 30 Nov 2026 11:00:00 GMT"}, "", 0),
        ({"retry-after": "soon"}, "", None),
        ({"x-ratelimit-reset-requests": "1m3.5s", "x-ratelimit-remaining-requests": "0"}, "", 63_500),
        (
            {
                "x-ratelimit-reset-requests": "340ms",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-tokens": "50s",
                "x-ratelimit-remaining-tokens": "900",
            },
            "",
            340,
        ),
        ({"x-ratelimit-reset": str(int(NOW.timestamp()) + 20)}, "", 20_000),
        ({"x-ratelimit-reset": str(int(NOW.timestamp() * 1000) + 500)}, "", 500),
        ({"anthropic-ratelimit-requests-reset": "2026-11-30T12:00:04Z"}, "", 4000),
        ({}, "Rate limit reached. Please try again in 1.4s.", 1400),
        ({}, "Please retry after 27 seconds.", 27_000),
        ({}, "try again in 2 minutes", 120_000),
        ({}, "Please try again in 6m0s. Visit us.", 360_000),
        ({}, "Please try again in 1h2m3.5s.", 3_723_500),
        ({}, "try again in 2 hours", 7_200_000),
        ({"retry-after": "999999999"}, "", LONGEST_MS),
    ],
)
def test_what_is_asked(headers: dict[str, str], text: str, expected: int | None) -> None:
    """CAP-7 ERR-2: seconds, dates, resets of used-up windows and words, the finest first, at most a day."""
    assert retry_after_ms(headers, NOW, text) == expected


@pytest.mark.parametrize(
    ("headers", "told", "text", "expected"),
    [
        ({}, "34.4s", "", 34_400),
        ({}, "250ms", "", 250),
        ({}, "7", "", 7000),
        ({}, "7", "try again in 2s", 7000),
        ({"retry-after": "3"}, "7", "", 3000),
        ({}, "soon", "try again in 2s", 2000),
    ],
)
def test_what_a_field_of_the_body_tells(headers: dict[str, str], told: str, text: str, expected: int) -> None:
    """CAP-7 ERR-2: a field is asked after the headers and before the words."""
    assert retry_after_ms(headers, NOW, text, told) == expected


@given(
    st.dictionaries(
        st.sampled_from(["retry-after", "retry-after-ms", "x-ratelimit-reset-tokens"]), st.text(max_size=30)
    ),
    st.text(max_size=60),
    st.text(max_size=30),
)
def test_nonsense_is_no_wait(headers: dict[str, str], text: str, told: str) -> None:
    """ERR-1: whatever a provider writes there, the answer is None or a wait between nothing and a day."""
    wait = retry_after_ms(headers, NOW, text, told)
    assert wait is None or 0 <= wait <= LONGEST_MS
