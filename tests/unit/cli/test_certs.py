"""`pointsman certs`: what it writes is what a process asks for."""

from pathlib import Path

from click.testing import CliRunner

from cli.main import main
from libs.host.certificates import OwnCertificates
from libs.host.placement import START_ORDER, placement
from libs.host.world import RealClock


def test_every_context_has_its_certificate(tmp_path: Path) -> None:
    """AUTH-3: one command makes an authority and a certificate for each context; its last lines are the settings."""
    said = CliRunner().invoke(main, ["certs", str(tmp_path)])
    assert said.exit_code == 0, said.output
    assert {path.stem for path in tmp_path.glob("*.pem")} == {*START_ORDER, "all", "ca"}
    env = dict(line.split("=", 1) for line in said.output.splitlines() if line.startswith("POINTSMAN_"))
    tls = placement(env, available=START_ORDER).tls
    assert tls is not None
    OwnCertificates(tls, START_ORDER, RealClock())


def test_a_process_with_two_contexts(tmp_path: Path) -> None:
    """AUTH-3: names joined by + share a certificate; a name that is no context is refused with those that are."""
    assert CliRunner().invoke(main, ["certs", str(tmp_path), "routing+runs"]).exit_code == 0
    assert (tmp_path / "routing+runs.pem").exists()
    said = CliRunner().invoke(main, ["certs", str(tmp_path), "router"])
    assert said.exit_code == 2
    assert "there is no context 'router'; the contexts are health" in said.output
