"""Embeddings in the OpenAI dialect, over a real socket, with the official client."""

import math

import openai
import pytest

MODEL = "text-embedding-3-small"


def nearness(one: list, other: list) -> float:
    """The cosine of two unit vectors."""
    return sum(a * b for a, b in zip(one, other, strict=True))


async def test_vectors_are_unit_and_near_where_texts_are(client):
    """The order of the texts is kept; a text is nearer to its paraphrase than to another subject."""
    texts = [
        "A lighthouse stands on the cliff.",
        "On a cliff stands an old lighthouse.",
        "Quarterly tax returns are due.",
    ]
    made = await client("lumen").embeddings.create(model=MODEL, input=texts)
    assert [item.index for item in made.data] == [0, 1, 2]
    one, other, far = (item.embedding for item in made.data)
    assert (len(one), math.hypot(*one)) == (1536, pytest.approx(1, abs=1e-5))
    assert nearness(one, other) > nearness(one, far) + 0.3
    assert made.usage.prompt_tokens == made.usage.total_tokens > 10


async def test_the_same_text_has_the_same_vector_everywhere(client):
    """Alone, in a list, in another account, as numbers and in base64: one vector."""
    text, vectors = "a harbour at night", []
    for account, given in (("lumen", text), ("lumen", ["first", text]), ("moss", text)):
        for encoding in ("float", "base64"):
            made = await client(account).embeddings.create(model=MODEL, input=given, encoding_format=encoding)
            vectors.append(made.data[-1].embedding)
    assert isinstance(vectors[1], str) or vectors[0] == pytest.approx(vectors[1])
    assert vectors[0] == vectors[2] == vectors[4]
    assert vectors[1] == vectors[3] == vectors[5]
    decoded = await client("lumen").embeddings.create(model=MODEL, input=text)  # the client asks for base64 and decodes
    assert decoded.data[0].embedding == pytest.approx(vectors[0])


async def test_shortened_vectors_are_unit_and_still_tell_texts_apart(client):
    """`dimensions` gives that many, of length one."""
    texts = ["a storm at sea", "the sea in a storm", "invoice number seven"]
    made = await client("lumen").embeddings.create(model=MODEL, input=texts, dimensions=256)
    one, other, far = (item.embedding for item in made.data)
    assert (len(one), math.hypot(*one)) == (256, pytest.approx(1, abs=1e-5))
    assert nearness(one, other) > nearness(one, far) + 0.2


async def test_token_numbers_are_texts_too(client):
    """One list of numbers is one text, its length is its tokens."""
    made = await client("lumen").embeddings.create(model=MODEL, input=[1, 2, 3])
    assert (len(made.data), made.usage.prompt_tokens) == (1, 3)


@pytest.mark.parametrize(
    "change, param",
    [
        ({"input": ""}, "input"),
        ({"input": ["x", ""]}, "input[1]"),
        ({"input": ["x"] * 257}, "input"),
        ({"input": "x " * 9000}, "input"),
        ({"dimensions": 9999}, "dimensions"),
    ],
)
async def test_a_bad_request_names_its_parameter(client, change, param):
    """Empty, too many, too long or too wide: a 400 by name."""
    with pytest.raises(openai.BadRequestError) as caught:
        await client("moss").embeddings.create(**{"model": MODEL, "input": "x"} | change)
    assert caught.value.param == param


async def test_the_ledger_counts_tokens(client, caller):
    """Charged by tokens read."""
    made = await client("moss").embeddings.create(model=MODEL, input=["one", "two words"])
    (row,) = (await caller.lab("GET", "/ledger"))["submissions"]
    assert (row["kind"], row["usage"]) == ("embedding", {"prompt_tokens": made.usage.prompt_tokens})
    assert float(row["charged"]["amount"]) == pytest.approx(0.1 * made.usage.prompt_tokens / 1e6)
