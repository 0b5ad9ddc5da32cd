"""The kinds of alerts, in what order they are read, and who raises them."""

import ast
from pathlib import Path

from services.routing.domain.alert_kinds import CONSEQUENCES, KINDS, consequence

SERVICES = Path(__file__).resolve().parents[3] / "services"
OPERATIONS = {
    "exact_supply_unavailable", "degradation_in_use", "emergency_override_used", "submission_unresolved",
    "cost_anomaly", "cost_drift", "budget_soft_limit", "budget_hard_limit", "breaker_opened", "stuck_state",
    "ledger_mismatch", "invariant_violated",
}  # fmt: skip
AT_ONCE = ("rights_expired", "facts_in_conflict", "release_hash_changed")
FROM_ABOVE = {"budget_soft_limit", "facts_in_conflict", "release_hash_changed"}
"""Only runs, which holds money for nodes and knows what people approved, raises these, through `RaiseAlert`."""
DEFINED = ("alert_kinds.py", "0015_consequences.py")


def raised(context: str) -> set[str]:
    """Every text in a context that is a kind of alert, the lists of them apart."""
    files = [path for path in (SERVICES / context).rglob("*.py") if path.name not in DEFINED]
    nodes = [node for path in files for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    return {node.value for node in nodes if isinstance(node, ast.Constant) and node.value in KINDS}


def test_every_kind_of_alert_is_raised_by_somebody():
    """OPS-6: no kind that operators are promised is a mere word."""
    assert raised("routing") == set(KINDS) - FROM_ABOVE
    assert raised("runs") >= FROM_ABOVE


def test_a_draft_names_a_known_kind():
    """OPS-6: nobody raises what operators, dashboards and rules do not know."""
    for path in (SERVICES / "routing").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("AlertDraft", "MeasuredDraft"):
                kind = node.args[0]
                assert not isinstance(kind, ast.Constant) or kind.value in KINDS, f"{path}: {ast.unparse(kind)}"


def test_every_kind_has_its_place():
    """SLO-2, OPS-6: what cannot be taken back is read first, then what is wrong with books and money, then what stands
    still, then what goes on dearer or poorer; a kind of a newer release comes last."""
    assert set(KINDS) == OPERATIONS | set(AT_ONCE)
    assert KINDS[:3] == AT_ONCE
    assert sorted(KINDS, key=consequence) == list(KINDS)
    assert consequence("news") == len(KINDS)
    assert all(CONSEQUENCES.values())
    for worse, milder in (
        ("invariant_violated", "cost_anomaly"),
        ("submission_unresolved", "cost_anomaly"),
        ("cost_anomaly", "stuck_state"),
        ("stuck_state", "breaker_opened"),
        ("breaker_opened", "cost_drift"),
        ("budget_hard_limit", "budget_soft_limit"),
    ):
        assert consequence(worse) < consequence(milder)


def test_the_guide_tells_the_same_order():
    """SLO-2: the table for operators is this one."""
    guide = (SERVICES.parent / "docs/guides/operations.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1].strip().strip("`") for line in guide.splitlines() if line.startswith("| `")]
    assert [row for row in rows if row in KINDS] == list(KINDS)
