"""`pointsman restored`: what is said to the server, and what of it."""

import json

from cli import output
from cli.commands.restored import restored
from tests.unit.cli.fake_server import FakeServer, invoke

PATH = "/v1/operator/restores"
KNOWN = {
    "restores": [{"backup_at": "2026-01-01T12:00:00Z", "noticed_at": "2026-01-01T12:09:00.5Z", "over_at": None}],
    "tasks": 3,
}


def test_the_word_and_what_follows_from_it() -> None:
    """OPS-8: the moment is passed on as typed; the answer names every restore, and how many tasks it is about."""
    server = FakeServer({PATH: KNOWN})
    said = invoke(restored, server, "--backup-at", "2026-01-01T12:00:00Z")
    assert said.exit_code == 0
    assert "2026-01-01T12:09:00Z" in said.output
    assert "3 tasks looked up before anything is sent" in said.output
    over = invoke(restored, server, "--over", "--json")
    assert json.loads(over.stdout) == KNOWN
    assert [body for _, _, body in server.asked] == [{"backup_at": "2026-01-01T12:00:00Z"}, {"over": True}]


def test_neither_is_wrong_use() -> None:
    """OPS-8: nothing is asked, and the two ways are named."""
    server = FakeServer()
    said = invoke(restored, server)
    assert (said.exit_code, server.asked) == (output.WRONG_USE, [])
    assert "--backup-at TIME or --over" in said.output
