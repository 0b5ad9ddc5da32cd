"""The kinds of alerts, and who raises them."""

import ast
from pathlib import Path

from services.routing.domain.alert_kinds import KINDS

ROUTING = Path(__file__).resolve().parents[3] / "services/routing"
FROM_ABOVE = {"budget_soft_limit"}
"""Only runs, which holds money for nodes, raises these, through `RaiseAlert`."""


def raised() -> set[str]:
    """Every text in routing that is a kind of alert, its list apart."""
    files = [path for path in ROUTING.rglob("*.py") if path.name != "alert_kinds.py"]
    nodes = [node for path in files for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    return {node.value for node in nodes if isinstance(node, ast.Constant) and node.value in KINDS}


def test_every_kind_of_alert_is_raised_by_somebody():
    """OPS-6: no kind that operators are promised is a mere word."""
    assert raised() == set(KINDS) - FROM_ABOVE


def test_a_draft_names_a_known_kind():
    """OPS-6: nobody raises what operators, dashboards and rules do not know."""
    for path in ROUTING.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "AlertDraft":
                kind = node.args[0]
                assert not isinstance(kind, ast.Constant) or kind.value in KINDS, f"{path}: {ast.unparse(kind)}"
