"""Redaction: what must never be seen, in any place where it could be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.telemetry.redaction import HIDDEN, is_secret_name, redact, redact_fields, redact_url

SECRETS = {
    "bearer": ("Authorization: Bearer eyAbcdef.123456", "eyAbcdef"),
    "basic": ("authorization=Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
    "key of a query": ("GET /v1?api_key=0123456789abcdef", "0123456789"),
    "openai key": ("key sk-proj-AbCdEf0123456789 refused", "AbCdEf"),
    "aws key": ("AKIAIOSFODNN7EXAMPLE refused", "AKIAIOSF"),
    "signed url": ("https://cdn.example/x.mp4?X-Amz-Signature=deadbeef&e=1 failed", "deadbeef"),
    "signed url in json": ('{"url":"https://cdn.example/x?sig=deadbeef"}', "deadbeef"),
    "user and password": ("postgresql+asyncpg://me:hunter22@db:5432/x is down", "hunter22"),
    "jwt": ("token eyJhbGciOi.eyJzdWIiOiIx.c2lnbmF0dXJl", "eyJzdWIi"),
    "data url": ("data:image/png;base64,iVBORw0KGgoAAAANS", "iVBORw0"),
    "long base64": ("blob " + "QUJD" * 60, "QUJDQUJD"),
    "prompt in json": ('{"prompt": "a cat in \\"boots\\"", "n": 1}', "boots"),
    "cut prompt in json": ('{"prompt": "a cat in boo', "boo"),
    "secret assignment": ("client_secret='s3cr3tvalue'", "s3cr3tvalue"),
    "private key": ("-----BEGIN PRIVATE KEY-----\nMIIEvQ\n-----END PRIVATE KEY-----", "MIIEvQ"),
}


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_in_free_text_is_hidden(name: str):
    """ERR-4: secrets, keys, signed URLs, media and prompts are recognised by shape."""
    text, secret = SECRETS[name]
    assert secret in text
    hidden = redact(text)
    assert secret not in hidden
    assert HIDDEN in hidden


@pytest.mark.parametrize(
    "text",
    [
        "supply 'ark-main/seedance' uses 5 of 5 slots",
        "task 01JDXQ4Z8R6W3V5T7Y9ABCDEFG failed: max_tokens must be at most 4096",
        "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "GET http://127.0.0.1:9101/api/v3/tasks/cgt-17 answered 404",
        "{\"n\": 1, \"size\": \"1280x720\"}",
    ],
)  # fmt: skip
def test_what_an_operator_needs_stays(text: str):
    """Ids, digests, paths, figures and plain addresses are not secrets."""
    assert redact(text) == text


@given(st.text(max_size=400))
def test_redaction_never_raises_and_needs_no_second_time(text: str):
    """ERR-4: any text may pass, and a text that was redacted stays as it is."""
    once = redact(text)
    assert redact(once) == once


def test_fields_are_judged_by_their_names():
    """ERR-4: secrets by name are hidden, contents become their size, figures stay."""
    fields = redact_fields({
        "api_key": "x", "Authorization": "y", "upstream_token": "z", "max_tokens": 7, "prompt": "a cat",
        "nested": {"secret": "s", "ok": "fine"}, "items": ["Bearer abcdefghij", 1], "payload": b"123", "supply": None,
        "error": ValueError("Bearer abcdefghij"),
    })  # fmt: skip
    assert fields == {
        "api_key": HIDDEN, "Authorization": HIDDEN, "upstream_token": HIDDEN, "max_tokens": 7, "prompt": "[redacted 5]",
        "nested": {"secret": HIDDEN, "ok": "fine"}, "items": [f"Bearer {HIDDEN}", 1], "payload": "[3 bytes]",
        "supply": None, "error": f"Bearer {HIDDEN}",
    }  # fmt: skip


def test_names_that_only_look_like_secrets_are_no_secrets():
    """A count of tokens is a figure."""
    assert not is_secret_name("max_tokens")
    assert not is_secret_name("tokens_per_minute")
    assert is_secret_name("X-Api-Key")


def test_a_url_keeps_where_it_leads():
    """Scheme, host, port and path help an operator; user, query and fragment do not leave."""
    assert redact_url("https://me:pw@h.example:8443/a/b?x=1#f") == f"https://{HIDDEN}@h.example:8443/a/b?{HIDDEN}"
    assert redact_url("http://[broken") == HIDDEN
