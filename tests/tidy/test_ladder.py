"""The ladder of quality is what the cases say, and no adapter falls below its first rungs."""

import pytest

from services.provider_adapter.adapters.quality import QUALITY
from services.provider_adapter.adapters.registry import ADAPTERS
from tools import ladder


def test_the_ladder_is_fresh():
    """`python -m tools.ladder` writes counts and table byte for byte as committed; after new cases run it again."""
    stale = [path.name for path, text in ladder.written().items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "run: python -m tools.ladder"


@pytest.mark.parametrize("name", sorted(ADAPTERS))
def test_the_first_rungs(name):
    """Twenty recorded exchanges, no field unaccounted for, and every certain failure classified as labelled."""
    quality = QUALITY[name]
    assert quality.exchanges >= 20
    assert quality.unknown_fields == 0
    assert quality.classified == quality.labelled


def test_a_planted_field_is_told_by_the_name_of_its_record(tmp_path):
    """A record with a field that nobody accounts for counts, unless its name says that the field was planted."""
    text = '{"outcome": {"unknown_fields": ["created.x"]}}'
    stray, planted = tmp_path / "create.json", tmp_path / "create_unknown_field.json"
    for path in (stray, planted):
        path.write_text(text)
    assert ladder.stray(stray)
    assert not ladder.stray(planted)
