"""What a process makes of the certificates that it is given."""

import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cli.issuing import Authority
from libs.host.certificates import OwnCertificates
from libs.host.placement import PlacementError, TlsFiles, placement
from tests.support.worlds import SteeredClock, steered_world

DAY_S = 86_400.0


@dataclass
class Home:
    """A folder with an authority, and the clock that all go by."""

    folder: Path
    clock: SteeredClock

    def authority(self) -> Authority:
        return Authority(self.folder, now=self.clock.now())

    def files(self, *contexts: str, days: float = 30) -> TlsFiles:
        made = self.authority().issue("own", contexts, days)
        return TlsFiles(made, made.with_suffix(".key"), self.folder / "ca.pem")

    def opened(self, files: TlsFiles, *contexts: str) -> OwnCertificates:
        return OwnCertificates(files, contexts, self.clock)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path, steered_world()[1])


def test_settings_name_all_three_files_or_none() -> None:
    """AUTH-3: a certificate without its key or its authority is refused, and the missing variable is named."""
    env = {"POINTSMAN_TLS_CERT": "/c.pem", "POINTSMAN_TLS_KEY": "/c.key", "POINTSMAN_TLS_CA": "/ca.pem"}
    assert placement(env, available=["edge"]).tls == TlsFiles(Path("/c.pem"), Path("/c.key"), Path("/ca.pem"))
    assert placement({}, available=["edge"]).tls is None
    own = placement({**env, "POINTSMAN_TLS_DOMAIN": "mesh.example."}, available=["edge"]).tls
    assert own is not None
    assert own.domain == "mesh.example"
    for missing in env:
        with pytest.raises(PlacementError, match=f"^{missing} must be set too"):
            placement({k: v for k, v in env.items() if k != missing}, available=["edge"])


def test_strangers_have_their_own_door() -> None:
    """AUTH-3: the public address asks for keys where the edge is; all else, and all of a named process, is inner."""

    def public(env: dict[str, str], *names: str, **more: Any) -> list[str]:
        return [str(address) for address in placement(env, names, **more, available=["edge", "runs"]).public]

    tls = {"POINTSMAN_TLS_CERT": "/c.pem", "POINTSMAN_TLS_KEY": "/c.key", "POINTSMAN_TLS_CA": "/ca.pem"}
    elsewhere, grpc, further = {"PEER_EDGE": "unix:/e.sock"}, "dns:///0.0.0.0:1", "dns:///0.0.0.0:2"
    assert public({"POINTSMAN_GRPC": grpc}) == [grpc]
    assert public({"POINTSMAN_GRPC": grpc}, listen=[further]) == [grpc, further]
    assert public({"POINTSMAN_GRPC": grpc, **tls}, listen=[further]) == [grpc]
    assert public({"POINTSMAN_GRPC": grpc, **elsewhere}) == []
    assert public({"POINTSMAN_GRPC": grpc}, "edge") == []
    assert public(elsewhere, "runs", grpc=grpc) == [grpc]
    with pytest.raises(PlacementError, match="say where it is: PEER_EDGE"):
        public({}, "runs", grpc=grpc)


def test_a_process_proves_every_context_that_it_hosts(home: Home) -> None:
    """AUTH-3: a certificate that lacks a name is told before anything is served, with the name to add."""
    files = home.files("routing", "cost_quote")
    home.opened(files, "routing", "cost_quote")
    with pytest.raises(PlacementError, match=r"own\.pem, which lacks the DNS name runs\.pointsman\.internal"):
        home.opened(files, "routing", "runs")


@pytest.mark.parametrize(
    ("broken", "text", "words"),
    [
        ("own.pem", "nonsense", "POINTSMAN_TLS_CERT is .*own.pem, which holds no PEM certificate"),
        ("ca.pem", "nonsense", "POINTSMAN_TLS_CA is .*ca.pem, which holds no PEM certificate"),
        ("own.key", "nonsense", "POINTSMAN_TLS_KEY is .*own.key, which is no PEM key"),
        ("own.key", None, "POINTSMAN_TLS_KEY is .*own.key, which cannot be read: No such file"),
    ],
)
def test_files_that_make_no_sense(home: Home, broken: str, text: str | None, words: str) -> None:
    """AUTH-3: each wrong file is named by its variable."""
    files = home.files("routing")
    path = home.folder / broken
    path.unlink() if text is None else path.write_text(text)
    with pytest.raises(PlacementError, match=words):
        home.opened(files, "routing")


def test_a_foreign_key_and_a_wrong_time(home: Home) -> None:
    """AUTH-3: a key of another certificate and a certificate that has ended are refused at the start."""
    files = home.files("routing", days=2)
    other = home.authority().issue("other", ["routing"], 2)
    with pytest.raises(PlacementError, match="which is not the key of"):
        home.opened(TlsFiles(files.chain, other.with_suffix(".key"), files.authorities), "routing")
    home.clock.advance(3 * DAY_S)
    with pytest.raises(PlacementError, match="put one in its place that is valid now"):
        home.opened(files, "routing")


async def test_changed_files_are_taken_over(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    """AUTH-3: new files hold without a restart; half of them never do, and unchanged ones are not read again."""
    caplog.set_level(logging.INFO)
    own = home.opened(home.files("routing"), "routing")
    await own.look()
    assert own.tls.generation == 0
    held = (home.folder / "own.pem").read_bytes()
    home.files("routing")
    renewed = (home.folder / "own.pem").read_bytes()
    (home.folder / "own.pem").write_bytes(held)
    await own.look()
    assert own.tls.generation == 0
    assert "the certificates before stay in force" in caplog.text
    (home.folder / "own.pem").write_bytes(renewed)
    await own.look()
    assert own.tls.generation == 1


async def test_an_end_is_told_in_time(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    """AUTH-3: a week before a certificate ends the log says so, once."""
    own = home.opened(home.files("routing", days=30), "routing")
    await own.look()
    assert caplog.text == ""
    home.clock.advance(24 * DAY_S)
    await own.look()
    await own.look()
    assert caplog.text.count("put a new one in its place") == 1


def test_keys_are_for_their_owner_alone(home: Home) -> None:
    """AUTH-3: what `pointsman certs` writes of keys nobody else may read; the authority is made once and kept."""
    home.files("routing")
    first = (home.folder / "ca.pem").read_bytes()
    home.files("routing", "runs")
    assert (home.folder / "ca.pem").read_bytes() == first
    assert {os.stat(home.folder / name).st_mode & 0o777 for name in ("ca.key", "own.key")} == {0o600}
