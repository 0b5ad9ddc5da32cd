"""The facts of a synchronous call that a price is asked with: no words, and never less than can be charged."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from services.cost_quote.domain.parsing import parse_rule
from services.cost_quote.domain.pricing import Priced, price
from services.routing.domain.calls.sizing import digest_of, facts_to_quote, stepped
from services.routing.domain.catalog import Kind, Supply

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
