"""The facts of a synchronous call that a price is asked with: no words, and never less than can be charged."""

import zlib
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.cost_quote.domain.parsing import parse_rule
from services.cost_quote.domain.pricing import Priced, price
from services.routing.domain.calls.documents import weight_of
from services.routing.domain.calls.sizing import digest_of, facts_to_quote, input_tokens, stepped, tokens_at_most
from services.routing.domain.catalog import Kind, Supply
from tests.unit.routing.call_stage import chat_supply

SUPPLY = Supply("a/x", 1, "a", "m", Kind.CHAT)
TEXT = st.text(max_size=60)
PART = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, TEXT),
    st.just({"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}),
    st.just({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}),
)
CONTENT = TEXT | st.lists(PART, max_size=4)
MESSAGES = st.lists(st.builds(lambda content: {"role": "user", "content": content}, CONTENT), max_size=5)
RULE = parse_rule(
    {
        "id": "r", "currency": "USD", "billing_mode": "per_token", "input_per_million": "1000000",
        "input_audio_per_million": "3000000", "input_image_per_million": "2000000", "output_per_million": "0",
        "output_audio_per_million": "9000000",
    }
)  # fmt: skip


def facts(kind: Kind = Kind.CHAT, **given: Any) -> dict[str, Any]:
    """As routing sends them."""
    return facts_to_quote(kind, digest_of(kind, given), SUPPLY)


@given(MESSAGES)
def test_the_facts_bound_the_conversation(messages: list[dict[str, Any]]) -> None:
    """COST-1: the quote by facts is at least the quote by the conversation itself, with no sort of token that the
    conversation has left out."""
    asked = facts(messages=messages, max_tokens=10)
    said = {name: asked[name] for name in asked if name.startswith(("input_audio", "input_image", "output_"))}
    by_facts = price(RULE, asked)
    whole = price(RULE, {"messages": messages, "max_tokens": 10, **said})
    assert isinstance(by_facts, Priced)
    assert isinstance(whole, Priced)
    role = sum(len("user") + len("text") * len(item["content"]) for item in messages)  # marks that are no words
    assert by_facts.amount + 3 * role >= whole.amount


def test_facts_say_what_cannot_be_charged() -> None:
    """COST-1: a conversation of words alone is not quoted at the price of sound; one that asks for sound is."""
    assert facts(messages=[{"role": "user", "content": "\u8239"}], max_tokens=7, service_tier="flex") == {
        "input_tokens": stepped(3 + 8), "max_output_tokens": 7, "service_tier": "flex", "input_image_tokens": 0,
        "input_audio_tokens": 0, "output_audio_tokens": 0, "output_image_tokens": 0,
    }  # fmt: skip
    spoken = facts(messages=[], modalities=["text", "audio"])
    assert "output_audio_tokens" not in spoken
    assert spoken["output_image_tokens"] == 0


def test_facts_of_a_picture_count_what_it_is_made_from() -> None:
    """COST-1: surcharges by reference pictures and prices by tokens find their figures."""
    asked = facts(Kind.IMAGE, prompt="a boat", n=2, size="1024x1024", reference_images=[{"url": "x"}, {"url": "y"}])
    assert asked == {
        "n": 2, "size": "1024x1024", "reference_images": [True, True], "input_image_tokens": 2 * 8192,
        "input_tokens": stepped(6 + 2 * 8192),
    }  # fmt: skip


def pdf(pages: int, *, packed: bool = False, hidden: bool = False) -> bytes:
    """As much of a PDF as somebody looks at who counts its pages."""
    tree = b"<< /Type /Pages /Count 3 >> " + b"<< /Type /Page /Parent 1 0 R >> " * pages
    if not packed:
        return b"%PDF-1.4 " + (b"" if hidden else tree)
    body = tree if hidden else zlib.compress(tree)
    return b"%PDF-1.7 4 0 obj << /Type /ObjStm /N 9 /First 50 /Filter /FlateDecode >> stream\r\n" + body + b"endstream"


def with_file(content: bytes | None, media_type: str = "application/pdf") -> dict[str, Any]:
    """A conversation with a document; None = one that the provider keeps."""
    data = {} if content is None else {"file_data": f"data:{media_type};base64,{b64encode(content).decode()}"}
    file = {"type": "file", "file": {"file_id": "file-1"} if content is None else data}
    return digest_of(Kind.CHAT, {"messages": [{"role": "user", "content": [file]}]})


NO_FILE = {"messages": [{"role": "user", "content": []}]}


@pytest.mark.parametrize(
    "content, media_type, most",
    [
        (pdf(1), "application/pdf", 8192),
        (pdf(7), "application/pdf", 7 * 8192),
        (pdf(7, packed=True), "application/pdf", 7 * 8192),
        (pdf(0) + bytes(100_001), "application/pdf", 100_038),
        (pdf(0), "application/pdf", 8192),
        (b"PK" + bytes(20_002), "application/vnd.oasis.opendocument.text", 20_004),
        (b"words " * 1000, "text/plain", 6000),
        (None, "", 100 * 8192),
    ],
    ids="page pages packed unseen small other text kept".split(),
)
def test_a_document_is_weighed_by_its_pages_or_its_size(content: bytes | None, media_type: str, most: int) -> None:
    """COST-3 SYN-11: a document is part of the ceiling; no model reads more of it than it takes at all."""
    digest, supply = with_file(content, media_type), chat_supply("a/talk")
    bare = tokens_at_most(Kind.CHAT, digest_of(Kind.CHAT, NO_FILE))
    assert tokens_at_most(Kind.CHAT, digest) == bare + most
    assert facts_to_quote(Kind.CHAT, digest, supply)["input_tokens"] >= bare + most
    assert 0 < input_tokens(Kind.CHAT, digest) <= bare + most
    small = chat_supply("a/talk", capabilities={"context_tokens": 4000})
    assert facts_to_quote(Kind.CHAT, digest, small)["input_tokens"] == stepped(bare + min(most, 4000))


@given(st.binary(max_size=200))
def test_any_bytes_are_weighed(content: bytes) -> None:
    """SEL-2: a document that is none, or cut, or encrypted, has the weight of its size and fails nothing."""
    for whole in (content, pdf(1, packed=True, hidden=True) + content, b"%PDF-1.7 /Type /ObjStm >> stream\n" + content):
        assert tokens_at_most(Kind.CHAT, with_file(whole)) >= 8192
    assert weight_of({"type": "file", "file": {"file_data": content.decode("latin-1")}}).most >= 8192


def test_a_clip_in_a_conversation_weighs_what_a_picture_does() -> None:
    """COST-3: whatever is read beside words is part of the ceiling."""
    clip = {"type": "video_url", "video_url": {"url": "https://x.example/a.mp4"}}
    digest = digest_of(Kind.CHAT, {"messages": [{"role": "user", "content": [clip]}]})
    assert tokens_at_most(Kind.CHAT, digest) >= 8192
