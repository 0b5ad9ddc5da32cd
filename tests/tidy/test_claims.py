"""Rules of the specification and the tests that prove them."""

import functools

from tests.tidy import rules, tree

CLAIMED = tree.ROOT / "tests/tidy/claimed_rules.txt"
KNOWN = tree.ROOT / "tests/tidy/rule_ids.txt"
SAMPLE = '''
def test_a():
    """{family}-3: takes exact ones, see {family}-1a."""
# {family}-4
def f():
    """{family}-5"""
'''.format(family="SEL")


@functools.cache
def named() -> dict[str, set[str]]:
    """Rule ids named in test docstrings: {rule: files}."""
    found: dict[str, set[str]] = {}
    for path in tree.python("tests"):
        for rule in rules.claims(tree.text(path) or ""):
            found.setdefault(rule, set()).add(path)
    return found


def test_a_claim_is_read_from_docstrings_of_tests_alone():
    """A rule in a remark, or in the docstring of something that is no test, claims nothing."""
    assert rules.claims(SAMPLE) == rules.rule_list("SEL 3 1a")


def test_a_list_of_rules_is_read_by_families():
    """Ranges and single numbers, remarks left out."""
    assert len(rules.rule_list("SEL 1..3 15a # a remark\n\nCAP 2\n")) == 5


def test_every_rule_claimed_done_is_named_by_a_test():
    """What is claimed done has a test whose docstring says so."""
    missing = rules.rule_list(CLAIMED.read_text()) - named().keys()
    assert not missing, f"claimed in {CLAIMED.name}, named by no test: {' '.join(sorted(missing))}"


def test_every_rule_named_by_a_test_exists():
    """A test that claims a rule which is not there has a misprint; so has a claim."""
    known = rules.rule_list(KNOWN.read_text())
    assert {rule: files for rule, files in named().items() if rule not in known} == {}
    assert rules.rule_list(CLAIMED.read_text()) <= known
