"""The list of names of libs/telemetry: spelt nowhere else, used, and shown in the guide."""

import ast

from libs.telemetry import names
from libs.telemetry.names import ATTRIBUTES, METRICS, SPANS, Metric
from libs.telemetry.pages import GUIDE, written
from tests.tidy import tree

LIST = "libs/telemetry/names.py"
LISTED = frozenset({*METRICS, *(metric.page_name for metric in METRICS.values()), *SPANS, *ATTRIBUTES})


def spelt(source: str) -> list[str]:
    """Texts in the code that are a name of the list, or begin as those of the GenAI conventions do."""
    texts = [node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)]
    return [text for text in texts if isinstance(text, str) and (text in LISTED or text.startswith("gen_ai."))]


def used(source: str) -> set[str]:
    """What the code takes from the list."""
    tree_of = ast.walk(ast.parse(source))
    return {
        node.attr
        for node in tree_of
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "names"
    }


def test_a_name_that_is_spelt_is_seen():
    """The rule fails on a metric, an attribute, and one of the conventions that is not listed."""
    assert spelt('a = "pointsman_runs_created_total"') == ["pointsman_runs_created_total"]
    assert spelt('b = {"error.type": 1, "gen_ai.input.messages": 2}') == ["error.type", "gen_ai.input.messages"]
    assert used("metrics.counter(names.RUNS_CREATED)") == {"RUNS_CREATED"}


def test_names_are_spelt_in_the_list_alone():
    """OPS-5: one list of names; whoever records takes a name from there."""
    breaches = {
        path: found for path in tree.python(*tree.PRODUCT) if path != LIST and (found := spelt(tree.text(path) or ""))
    }
    assert breaches == {}


def test_every_name_of_the_list_is_used():
    """OPS-5: a name that nothing records tells nobody anything."""
    taken = set().union(*(used(tree.text(path) or "") for path in tree.python(*tree.PRODUCT) if path != LIST))
    listed = {
        name
        for name, value in vars(names).items()
        if isinstance(value, Metric) or (name.isupper() and isinstance(value, str) and value in LISTED)
    }
    assert listed - taken == set()


def test_the_guide_shows_the_list():
    """OPS-5: every name with its unit and its meaning; `python -m libs.telemetry.pages` writes it."""
    guide = (tree.ROOT / GUIDE).read_text(encoding="utf-8")
    assert guide == written(guide)
    assert all(f"`{name}`" in guide for name in LISTED)
