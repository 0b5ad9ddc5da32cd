"""The table of who may call what, beside the code that calls and the contract that is called."""

import ast
import importlib
import pkgutil
from collections import defaultdict
from pathlib import Path

from google.protobuf.descriptor import FileDescriptor

import pointsman
from libs.host.placement import START_ORDER
from libs.rpc.admission import SCOPES
from libs.rpc.callers import CALLERS

ROOT = Path(__file__).resolve().parents[3]
PEERS = sorted(ROOT.glob("services/*/peers/*.py"))


def methods() -> set[str]:
    """The path of every method of the contract."""
    found = set()
    for module in pkgutil.walk_packages(pointsman.__path__, "pointsman."):
        if module.name.endswith("_pb2"):
            described: FileDescriptor = importlib.import_module(module.name).DESCRIPTOR
            for service in described.services_by_name.values():
                found |= {f"/{service.full_name}/{method.name}" for method in service.methods}
    return found


def called_in(path: Path) -> set[str]:
    """The methods that a module calls through stubs which it keeps: `self.NAME = XStub(…)`, `self.NAME.Method`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    services = {
        alias.name: f"{node.module.split('.')[1]}.v1.{alias.name.removesuffix('Stub')}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("_pb2_grpc")
        for alias in node.names
    }
    kept = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            made = node.value.func
            if isinstance(target, ast.Attribute) and isinstance(made, ast.Name) and made.id in services:
                kept[target.attr] = services[made.id]
    return {
        f"/pointsman.{kept[node.value.attr]}/{node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute) and node.value.attr in kept
    }


def test_the_table_is_what_the_code_does() -> None:
    """AUTH-3: each context may call what its peers call, and nothing else; what no context calls is closed to all."""
    used: dict[str, set[str]] = defaultdict(set)
    for path in PEERS:
        for method in called_in(path):
            used[method].add(path.parts[-3])
    for method in (
        "KeyService/Authenticate",
        "AdmissionService/Judge",
        "AdmissionService/Reveal",
    ):  # of whoever has a public port
        used[f"/pointsman.edge.v1.{method}"] |= set(START_ORDER)
    promised = methods()
    calls = {(caller, method) for method, callers in used.items() if method in promised for caller in callers}
    rows = {(caller, method) for method, callers in CALLERS.items() for caller in callers}
    assert sorted(calls - rows) == [], "called, but not in the table: add a row to libs/rpc/callers.py"
    assert sorted(rows - calls) == [], "in the table, but nobody calls it: take the row out of libs/rpc/callers.py"


def test_the_tables_name_methods_of_the_contract() -> None:
    """AUTH-3: no row of either table is about a method that does not exist."""
    assert sorted((set(CALLERS) | set(SCOPES)) - methods()) == []


def test_what_only_operators_may_do_takes_their_scope() -> None:
    """AUTH-3: over the public port a method is an operator's unless the table of scopes opens it to users."""
    opened = {method for method, scopes in SCOPES.items() if scopes & {"runs", "invoke"}}
    operators = methods() - opened
    assert {
        "/pointsman.routing.v1.RoutingService/ResolveAttempt",
        "/pointsman.health.v1.HealthService/SetState",
    } <= operators
    assert all(SCOPES.get(method, frozenset({"operate", "admin"})) <= {"operate", "admin"} for method in operators)
