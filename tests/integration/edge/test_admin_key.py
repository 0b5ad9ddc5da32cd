"""The operator's key over restarts, and keys in a real database."""

import stat
from pathlib import Path

import pytest

from libs.blobs.local import LocalBlobs
from libs.rpc.channels import Channels
from libs.rpc.loopback import LoopbackRegistry
from services.edge.compose import build
from services.edge.settings import Settings
from services.edge.store.admin_key import read_or_make
from tests.contract.edge.house import edge_house
from tests.support.worlds import steered_world


async def test_the_admin_key_is_shown_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """AUTH-1: the start that makes the key shows it; later starts do not, and no log line holds it."""
    for shown in (True, False):
        async with edge_house(tmp_path, admin_key="") as house:
            await house.context.start()
            assert house.context.admin_key is not None
        told = capsys.readouterr()
        assert (house.context.admin_key.text in told.out) == shown
        assert house.context.admin_key.text not in told.err


async def test_the_admin_key_is_made_once(tmp_path: Path) -> None:
    """AUTH-1: without a setting a key is made, written for its owner's eyes alone, and stays over restarts."""
    data = tmp_path / "data"
    async with edge_house(data, admin_key="") as first:
        made = first.context.admin_key
        assert made is not None
        assert made.fresh
        async with first.client(made.text) as client:
            assert (await client.get("/v1/operator/keys")).status_code == 200
    file = data / "admin.key"
    assert file.read_text().strip() == made.text
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    async with edge_house(data, admin_key="") as second:
        assert second.context.admin_key is not None
        assert (second.context.admin_key.text, second.context.admin_key.fresh) == (made.text, False)


async def test_a_set_admin_key_is_not_written(tmp_path: Path) -> None:
    """AUTH-1: a key that the operator sets is taken as it is and kept nowhere."""
    async with edge_house(tmp_path, admin_key="words of my own") as house:
        async with house.client("words of my own") as client:
            assert (await client.get("/v1/operator/keys")).status_code == 200
    assert not (tmp_path / "admin.key").exists()


def test_of_two_that_make_it_one_wins(tmp_path: Path) -> None:
    """AUTH-1: a second process reads the key that the first has made; an empty file is filled."""
    (tmp_path / "admin.key").write_text("")
    assert read_or_make(tmp_path, lambda: "one") == ("one", True)
    assert read_or_make(tmp_path, lambda: "two") == ("one", False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["admin.key"]


async def test_keys_live_in_the_database(pg_url: str, tmp_path: Path) -> None:
    """AUTH-1: a key made at one replica is known at another, and revoked there within the cache's time."""
    async with edge_house(tmp_path / "a", database_url=pg_url) as one:
        key_id, text = await one.key()
        world, clock = steered_world()
        channels = Channels(registry=LoopbackRegistry())
        settings = Settings(pg_url, str(tmp_path / "blobs"), str(tmp_path), admin_key="x")
        other = build(settings, channels, world, blobs=LocalBlobs(tmp_path / "blobs"))
        try:
            key, _ = await other._house.authenticator.key(text)
            assert (key.id, key.tenant) == (key_id, "studio")
            async with one.admin as admin:
                assert (await admin.delete(f"/v1/operator/keys/{key_id}")).status_code == 204
            caller = await other._house.authenticator.bearer(f"Bearer {text}")
            clock.advance(settings.key_cache_s)
            assert not await other._house.authenticator.still(caller)
            assert settings.key_cache_s + settings.stream_check_s < 5
        finally:
            await other.stop()
            await channels.close(0.0)
