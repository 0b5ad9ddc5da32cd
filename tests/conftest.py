"""What holds for every test: no sockets in unit tests, property tests that race no clock and forget no failure.

Property tests draw the same examples each time, so that a change answers for what it broke and for nothing else; with
POINTSMAN_EXPLORE=1 (`make explore`) they draw new ones, and ten times as many.

Several workers take whole files in turn, so the long ones come first: whoever is done early finds short ones to take.
"""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.support.postgres", "tests.support.valkey"]

ROOT = Path(__file__).resolve().parent.parent
UNIT = ROOT / "tests" / "unit"
LONG_FIRST = ("e2e", "simulation", "integration", "contract")
CONNECTING = frozenset({"socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo"})

# No deadline: a slow machine is not a bug. print_blob: a failure in CI can be replayed from its log.
settings.register_profile(
    "steady",
    deadline=None,
    max_examples=60,
    print_blob=True,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("exploring", settings.get_profile("steady"), derandomize=False, max_examples=600)
settings.load_profile("exploring" if os.environ.get("POINTSMAN_EXPLORE") else "steady")


class SocketGuard:
    """Refuses sockets while it is armed. An audit hook cannot be removed, so there is one and it is switched."""

    def __init__(self) -> None:
        self.armed = False
        sys.addaudithook(self._audit)

    def _audit(self, event: str, args: tuple[object, ...]) -> None:
        if self.armed and event in CONNECTING:
            raise RuntimeError(f"a unit test reached for a socket ({event}); such a test belongs in tests/integration")


guard = SocketGuard()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None):
    """Arm the guard around a unit test, its fixtures included."""
    guard.armed = UNIT in item.path.parents
    try:
        return (yield)
    finally:
        guard.armed = False


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order the files for several workers; alone, what is quick to fail stays first."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: _turn(item.path))


def _turn(path: Path) -> int:
    kind = path.relative_to(ROOT / "tests").parts[0]
    return LONG_FIRST.index(kind) if kind in LONG_FIRST else len(LONG_FIRST)
