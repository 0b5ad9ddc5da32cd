"""Every import contract is seen to fail: a contract that guards nothing is worse than none."""

import configparser
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidy import tree

# (contract, room that breaks it, what it imports); "" as import: the room alone is the breach.
VIOLATIONS = [
    ("street", "libs/kernel", "services.edge"),
    ("street", "services/edge", "cli.main"),
    ("houses", "services/runs/app", "services.routing.app"),
    ("houses", "services/capacity/peers", "services.health.domain"),
    ("rooms", "services/routing/domain", "services.routing.app"),
    ("rooms", "services/capacity/app", "services.capacity.store"),
    ("rooms", "services/health/servicer", "services.health.store"),
    ("rooms", "services/cost_quote/attic", ""),
    ("rooms", "services/runs/app", "services.runs.wire"),
    ("rooms-provider-adapter", "services/provider_adapter/adapters", "services.provider_adapter.driver"),
    ("rooms-edge", "services/edge/routes", "services.edge.peers"),
    ("domain-purity", "services/health/domain", "random"),
    ("domain-purity", "services/routing/domain", "libs.faults.wire"),
    ("domain-purity", "services/capacity/domain", "sqlalchemy"),
    ("adapters-pure", "services/provider_adapter/adapters", "aiohttp"),
    ("generated-at-the-door", "services/runs/app", "pointsman.runs.v1.run_pb2"),
    ("grpc-at-the-door", "services/edge/routes", "grpc"),
    ("sql-in-the-store", "services/runs/app", "sqlalchemy"),
    ("one-outward-socket", "services/edge/routes", "aiohttp"),
    ("studio", "services/edge/app", "services.studio"),
    ("ground", "libs/kernel", "libs.faults"),
]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the product code and its contracts, to break."""
    for folder in tree.PRODUCT:
        shutil.copytree(tree.ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "gen"))
    shutil.copy(tree.ROOT / ".importlinter", tmp_path)
    return tmp_path


def room(root: Path, place: str) -> Path:
    """A file in the room: its module, or a new one in its package; the room is made if the house has none."""
    module = root / f"{place}.py"
    if module.exists():
        return module
    folder = root / place
    folder.mkdir(parents=True, exist_ok=True)
    for package in (folder, folder.parent):
        (package / "__init__.py").touch()
    return folder / "injected.py"


def check(root: Path, contract: str) -> tuple[int, str]:
    """Run one contract over a tree; answers the exit code and what was said."""
    done = subprocess.run(
        [str(Path(sys.executable).parent / "lint-imports"), "--no-cache", "--no-logo", "--contract", contract],
        cwd=root,
        env={"PYTHONPATH": str(root), "COLUMNS": "200", "PATH": ""},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(("contract", "place", "imported"), VIOLATIONS)
def test_a_contract_fails_on_a_violation(copy: Path, contract: str, place: str, imported: str):
    """One import in the wrong direction, and the contract that forbids it is broken and names the place."""
    if imported.split(".")[0] in tree.PRODUCT:
        room(copy, imported.replace(".", "/"))
    with room(copy, place).open("a") as module:
        module.write(f"\nimport {imported}\n" if imported else "\n")
    code, said = check(copy, contract)
    assert code == 1, said
    assert "1 broken" in said
    assert place.split("/")[-1] in said


@pytest.fixture
def config() -> configparser.ConfigParser:
    """The contracts as they are configured."""
    parser = configparser.ConfigParser()
    parser.read(tree.ROOT / ".importlinter")
    return parser


def test_every_house_has_its_rooms_checked(config: configparser.ConfigParser):
    """A new house cannot escape the floors: each context stands in exactly one contract of rooms."""
    houses = {"/".join(path.split("/")[:2]) for path in tree.python("services") if path.count("/") > 1}
    checked = [place for name in config.sections() for place in config[name].get("containers", "").split()]
    assert sorted(houses - {"services/studio"}) == sorted(
        place.replace(".", "/") for place in checked if place.startswith("services.")
    )


def test_every_contract_has_a_violation(config: configparser.ConfigParser):
    """No contract is added without an injected violation."""
    contracts = {name.split(":")[-1] for name in config.sections() if ":contract:" in name}
    assert contracts == {contract for contract, _, _ in VIOLATIONS}
