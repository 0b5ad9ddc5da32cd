"""Links that open one material for a while."""

from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.materials.links import LIFETIME, Links, links_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LINKS = Links("https://pointsman.example", b"a key that nobody guesses")
A, B = "a" * 64, "b" * 64


def words(links: Links = LINKS, sha256: str = A) -> tuple[str, str]:
    """(expires, signature) of a link."""
    query = parse_qs(urlsplit(links.url(sha256, NOW)).query)
    return query["expires"][0], query["signature"][0]


def test_a_link_opens_its_material_for_a_day() -> None:
    """AUTH-4: one digest, until one time, by one key; nothing else."""
    expires, signature = words()
    assert LINKS.opens(A, expires, signature, NOW)
    assert LINKS.opens(A, expires, signature, NOW + LIFETIME - timedelta(seconds=1))
    assert not LINKS.opens(A, expires, signature, NOW + LIFETIME)
    assert not LINKS.opens(B, expires, signature, NOW)
    assert not LINKS.opens(A, str(int(expires) + 1), signature, NOW)
    assert not Links("https://pointsman.example", b"another key entirely").opens(A, expires, signature, NOW)
    assert "nobody" not in repr(LINKS)


@given(st.text(), st.text())
def test_no_words_open_by_themselves(expires: str, signature: str) -> None:
    """AUTH-4: whatever comes as a link is compared, and never raises."""
    assert not LINKS.opens(A, expires, signature, NOW)
    assert not LINKS.opens(A, words()[0], signature, NOW)


def test_settings_say_where_and_by_which_key() -> None:
    """AUTH-4: no address means no links; an address without a key, or that is none, is an operator's mistake."""
    assert links_of({}) is None
    env = {"POINTSMAN_PUBLIC_URL": "https://p.example/", "POINTSMAN_LINK_KEY": "k" * 16}
    made = links_of(env)
    assert made is not None
    assert made.url(A, NOW).startswith(f"https://p.example/v1/materials/{A}?expires=")
    for wrong in ({"POINTSMAN_LINK_KEY": "short"}, {"POINTSMAN_LINK_KEY": ""}, {"POINTSMAN_PUBLIC_URL": "p.example"}):
        with pytest.raises(ValueError):
            links_of(env | wrong)
