"""What no linter says: reasons beside suppressions, no stubs, no patches."""

from tests.tidy import rules, tree


def breaches_of(rule, *roots: str) -> list[str]:
    """Apply a rule to the Python files under the given top folders."""
    return [breach for path in tree.python(*roots) for breach in rule(path, tree.text(path) or "")]


def test_a_suppression_without_a_reason_is_refused():
    """The rule fails on a bare suppression and passes one that says why."""
    assert rules.unexplained("a.py", "import x  # no" + "qa: F401\n")
    assert rules.unexplained("a.py", "x = y  # type: ig" + "nore[arg-type]\n")
    assert rules.unexplained("a.py", "import x  # no" + "qa: F401 - registers the tables\n") == []


def test_every_suppression_has_a_reason():
    """A silenced tool is silenced for a reason that the next reader can judge."""
    assert breaches_of(rules.unexplained) == []


def test_stubs_reminders_and_skips_are_refused():
    """The rule fails on each of them."""
    assert rules.unfinished("a.py", "# TO" + "DO later\n")
    assert rules.unfinished("a.py", "raise NotImplemented" + "Error\n")
    assert rules.unfinished("a.py", "import pytest\n@pytest.mark.sk" + "ip\ndef test_a(): ...\n")


def test_nothing_is_unfinished():
    """What is promised is there; what is not there is not promised."""
    assert [breach for breach in breaches_of(rules.unfinished) if not breach.startswith("tests/tidy/")] == []


def test_patches_are_refused():
    """The rule fails on monkeypatch, on mock and on waiting by the clock."""
    assert rules.patched("a.py", "def test_a(monkey" + "patch): ...\n")
    assert rules.patched("a.py", "from unittest import mo" + "ck\n")
    assert rules.patched("a.py", "import time\ntime.sl" + "eep(1)\n")


def test_tests_use_fakes_and_never_patches():
    """Every double comes in through a port, and no test synchronises by sleeping."""
    assert breaches_of(rules.patched, "tests") == []


def test_a_module_that_nothing_loads_is_refused():
    """The rule fails on a module without importers; relative imports count as imports."""
    sources = {"libs/a/x.py": "from . import y\n", "libs/a/y.py": "", "libs/a/z.py": ""}
    assert rules.dead(sources, {"x.py"}) == ["libs/a/z.py: nothing loads this module"]


def test_no_module_is_dead():
    """Every module of the product is loaded by the product, or is a door that entry_points.txt names."""
    lines = (tree.ROOT / "tests/tidy/entry_points.txt").read_text().splitlines()
    entries = {line.split("#")[0].strip() for line in lines} - {""}
    sources = {path: tree.text(path) or "" for path in tree.python(*tree.PRODUCT)}
    assert rules.dead(sources, entries) == []
