"""The catalogues that guides show can be applied as they stand."""

import re
from pathlib import Path

import pytest

from services.provider_adapter.adapters.registry import ADAPTERS
from services.routing.domain.catalog_file import read_file
from services.routing.domain.catalog_links import link_faults

GUIDES = Path(__file__).parents[3] / "docs" / "guides"
WAYS = {
    name: frozenset((adapter.manifest.reconcile_by, *adapter.manifest.reconcile_offers))
    for name, adapter in ADAPTERS.items()
}
SHOWN = [
    pytest.param(block, id=f"{path.stem}-{number}")
    for path in sorted(GUIDES.glob("*.md"))
    for number, block in enumerate(re.findall(r"```yaml\n(version:.*?)```", path.read_text(), re.DOTALL))
]


@pytest.mark.parametrize("text", SHOWN)
def test_a_catalogue_in_a_guide_is_whole(text: str) -> None:
    """CAT-1: every name in it leads somewhere, every adapter exists, every field is known."""
    file = read_file(text)
    assert [*file.faults, *link_faults(file, None, WAYS)] == []


def test_guides_show_catalogues() -> None:
    """CAT-1: there is something to hold to it."""
    assert SHOWN
