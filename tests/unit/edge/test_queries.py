"""Query strings, headers, ranges, settings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.faults.fault import Fault
from services.edge.domain import queries, ranges
from services.edge.settings import Settings, parse_address


@pytest.mark.parametrize("text", ["-1", "1e3", "x", " 1", "٣", "1.", "0x1", "nan", "inf"])
def test_numbers_are_plain(text: str) -> None:
    """EDG-2: a number in a query is digits, with a point at most."""
    with pytest.raises(Fault) as caught:
        queries.number(text, "n", 1, 0, 1e12)
    assert caught.value.errors[0].pointer == "/query/n"
    assert caught.value.errors[0].reason == "must be a number between 0 and 1000000000000"


@pytest.mark.parametrize("text", ["1.5", "100.0", "0", "1001", "9" * 30, "-1", "all"])
def test_a_page_is_of_whole_rows(text: str) -> None:
    """EDG-2: a size that is none is refused by the name of its parameter, not rounded in silence."""
    with pytest.raises(Fault) as caught:
        queries.page_size(text, "limit")
    assert caught.value.errors[0].pointer == "/query/limit"


def test_defaults_and_bounds() -> None:
    """EDG-2: nothing said is the default; bounds are part of what may be said."""
    assert (queries.page_size(None), queries.page_size(""), queries.page_size("1000")) == (100, 100, 1000)
    assert queries.number("0.5", "n", 1, 0.5, 2) == 0.5
    assert (queries.cursor(None, "after"), queries.cursor("7", "after")) == (0, 7)
    assert [queries.flag(text, "f") for text in (None, "", "0", "false", "1", "true")] == [False] * 4 + [True] * 2
    assert queries.statuses(["running,failed", "paused"]) == ("running", "failed", "paused")
    assert queries.idempotency_key(None) == ""


@pytest.mark.parametrize(
    "text", ["now", "2026-01-31T09:30:00", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"]
)
def test_what_is_no_time(text: str) -> None:
    """EDG-2: neither what has no offset, nor what its offset leads out of the calendar."""
    with pytest.raises(Fault) as caught:
        queries.moment(text, "at")
    assert caught.value.errors[0].pointer == "/query/at"


def test_a_time_is_told_in_utc() -> None:
    """EDG-2: whatever its offset."""
    assert str(queries.moment("2026-01-31T23:30:00-01:00", "at")) == "2026-02-01 00:30:00+00:00"


@given(st.integers(0, 300), st.integers(0, 400), st.integers(0, 400))
def test_a_range_is_what_the_standard_says(size: int, first: int, last: int) -> None:
    """RUN-7: `bytes=FIRST-LAST` is that slice, cut at the end; outside is a fault; backwards is no range."""
    content = bytes(index % 256 for index in range(size))
    header = f"bytes={first}-{last}"
    if last < first:
        assert ranges.byte_range(header, size) is None
    elif first >= size:
        with pytest.raises(Fault) as caught:
            ranges.byte_range(header, size)
        assert (caught.value.code, caught.value.metadata["size"]) == ("range_not_satisfiable", str(size))
    else:
        found = ranges.byte_range(header, size)
        assert found is not None
        assert content[slice(*found)] == content[first : last + 1] != b""


@given(st.integers(0, 300), st.integers(0, 400))
def test_a_suffix_is_the_end(size: int, count: int) -> None:
    """RUN-7: `bytes=-COUNT` is the last bytes, all of them if there are fewer."""
    try:
        found = ranges.byte_range(f"bytes=-{count}", size)
    except Fault:
        assert not size or not count
        return
    assert found == (max(0, size - count), size)


@pytest.mark.parametrize(
    "header", [None, "", "bytes=", "bytes=a-b", "bytes=1", "bytes=--1", "items=0-1", "bytes=0-1,3-4"]
)
def test_what_is_no_range(header: str | None) -> None:
    """RUN-7: what cannot be read as one range is answered with everything."""
    assert ranges.byte_range(header, 10) is None


@pytest.mark.parametrize(
    "text, address",
    [("127.0.0.1:8080", ("127.0.0.1", 8080)), ("[::1]:0", ("::1", 0)), ("localhost:1", ("localhost", 1))],
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    """OPS-1: POINTSMAN_HTTP is HOST:PORT, an IPv6 host in brackets."""
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["8080", ":8080", "a:b", "a:70000", "::1:80", "http://a:80/"])
def test_addresses_that_are_none(text: str) -> None:
    """OPS-1: a wrong address is refused with the variable's name."""
    with pytest.raises(ValueError, match="POINTSMAN_HTTP"):
        parse_address(text)


def test_settings_from_the_environment() -> None:
    """OPS-1: what is not set has a default; blobs lie in the data directory unless said otherwise."""
    plain = Settings.from_env({"POINTSMAN_DATABASE_URL": "memory:"})
    assert (plain.http_host, plain.http_port, plain.blobs) == ("127.0.0.1", 8080, "./.pointsman/blobs")
    assert (plain.admin_key, plain.allow_private_urls) == ("", False)
    env = {
        "POINTSMAN_DATABASE_URL": "memory:",
        "POINTSMAN_HTTP": "0.0.0.0:0",
        "POINTSMAN_DATA": "/d",
        "POINTSMAN_BLOBS": "s3://b",
        "POINTSMAN_ADMIN_KEY": "k",
        "POINTSMAN_ALLOW_PRIVATE_URLS": "1",
    }
    told = Settings.from_env(env)
    assert (told.http_host, told.http_port, told.data_directory, told.blobs) == ("0.0.0.0", 0, "/d", "s3://b")
    assert (told.admin_key, told.allow_private_urls) == ("k", True)
