"""The product as more processes than contexts: two of each, or many dispatchers, over one database."""

from pathlib import Path

from cli.demo.stage import free_ports
from libs.host.placement import START_ORDER
from tests.support.stack import Setting, SevenProcesses

REST = tuple(name for name in START_ORDER if name != "routing")


class TwoOfEach(SevenProcesses):
    """Fourteen processes: `health-1`, `health-2` and so on. The second edge has a port of its own, `other_url`."""

    members = tuple(f"{name}-{number}" for name in START_ORDER for number in (1, 2))

    def __init__(self, folder: Path, setting: Setting) -> None:
        super().__init__(folder, setting)
        self.other_url = f"http://127.0.0.1:{free_ports(1)[0]}"

    def contexts_of(self, member: str) -> tuple[str, ...]:
        return (member.rpartition("-")[0],)

    def _http_of(self, member: str) -> str:
        return (self.other_url if member == "edge-2" else self.url).removeprefix("http://")


class EightDispatchers(SevenProcesses):
    """Eight processes of routing, and one for everything else."""

    members = ("rest", *(f"routing-{number}" for number in range(1, 9)))

    def contexts_of(self, member: str) -> tuple[str, ...]:
        return REST if member == "rest" else ("routing",)
