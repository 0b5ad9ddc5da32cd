"""Vectors: unit, the same everywhere, and near where the words are alike."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.studio.domain.vectors import embedded


def vector(text: str, space: str = "m", dimensions: int = 1536) -> tuple[float, ...]:
    """A vector in a space of 1536 dimensions."""
    return embedded(text, space, 1536, dimensions)


def nearness(one: str, other: str, dimensions: int = 1536) -> float:
    """The cosine of two texts."""
    pairs = zip(vector(one, dimensions=dimensions), vector(other, dimensions=dimensions), strict=True)
    return sum(a * b for a, b in pairs)


@pytest.mark.parametrize("dimensions", [128, 512, 1536])
@pytest.mark.parametrize(
    "text, near, far",
    [
        ("The cat sleeps on the sofa.", "A cat is sleeping on a sofa.", "Interest rates rose in March."),
        ("How do I reset my password?", "password reset does not work", "Where can I buy fresh bread?"),
        ("灯塔在悬崖上", "悬崖上的灯塔", "今天的股票价格"),
    ],
)
def test_like_texts_are_nearer_than_unlike_ones(text, near, far, dimensions):
    """The words and their parts decide, also in a shortened vector and without blanks between words."""
    assert nearness(text, near, dimensions) > nearness(text, far, dimensions) + 0.15


@given(st.text(), st.sampled_from([1, 3, 64, 1536]))
def test_every_text_has_one_unit_vector(text, dimensions):
    """Of length one, also where nothing of the text falls into the part that is left."""
    made = vector(text, dimensions=dimensions)
    assert len(made) == dimensions
    assert math.hypot(*made) == pytest.approx(1)


def test_two_models_have_two_spaces():
    """Vectors of different models say nothing to each other."""
    pairs = zip(vector("a harbour at night", "one"), vector("a harbour at night", "two"), strict=True)
    assert abs(sum(a * b for a, b in pairs)) < 0.2
