"""Every error code has its page, and every page its code."""

from pathlib import PurePosixPath

from libs.faults import registry
from tests.tidy import tree

INDEX = "README"


def test_every_error_code_has_a_page():
    """ERR-3: a code that a client may meet is explained at docs/errors/<code>.md, and no page outlives its code."""
    pages = {PurePosixPath(path).stem for path in tree.files() if path.startswith("docs/errors/")} - {INDEX}
    assert sorted(pages ^ set(registry.CODES)) == []


def test_the_page_of_a_code_is_titled_by_it():
    """ERR-3: a page can be found by the code that it explains."""
    for path in tree.files():
        code = PurePosixPath(path).stem
        if path.startswith("docs/errors/") and code != INDEX:
            assert code in (tree.text(path) or "").split("\n", 1)[0]
