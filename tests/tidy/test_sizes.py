"""Sizes of functions, modules and protos, as a ratchet."""

from tests.tidy import rules, tree

ALLOWANCES = tree.ROOT / "tests/tidy/oversize.txt"


def allowed() -> dict[str, int]:
    """Read oversize.txt."""
    lines = (line.split("#")[0].split() for line in ALLOWANCES.read_text().splitlines())
    return {place: int(count) for place, count in filter(None, lines)}


def test_a_long_function_and_a_long_module_are_refused():
    """The rule fails on one line too many of either."""
    function = "def f():\n" + "    x = 1\n" * 50
    assert rules.ratchet(rules.sizes("a.py", function), {}) == ["a.py:f: 51 lines"]
    assert rules.ratchet(rules.sizes("a.py", "x = 1\n" * 401), {}) == ["a.py: 401 lines"]


def test_an_allowance_may_only_shrink():
    """The ratchet refuses growth, and an allowance larger than what it allows."""
    assert rules.ratchet({"a.py": 450}, {"a.py": 440})
    assert rules.ratchet({"a.py": 420}, {"a.py": 440})
    assert rules.ratchet({"a.py": 440}, {"a.py": 440}) == []


def test_functions_and_modules_fit_in_the_mind_of_a_reader():
    """Functions have at most 50 lines, modules and protos at most 400, except what oversize.txt still allows."""
    large: dict[str, int] = {}
    for path in (*tree.python(), *(path for path in tree.files() if path.endswith(".proto"))):
        large.update(rules.sizes(path, tree.text(path) or ""))
    assert rules.ratchet(large, allowed()) == []
