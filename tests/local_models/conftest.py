"""A studio whose engines are the real models, and the callers of the studio's other tests."""

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from services.studio.compose import Studio
from services.studio.settings import StudioConfig
from tests.integration.studio.conftest import Caller, client, config

__all__ = ["client", "config"]


@pytest.fixture
async def caller(config: StudioConfig, tmp_path: Path) -> AsyncIterator[Caller]:
    """A running studio and its caller."""
    async with Studio(config.with_local_models(), tmp_path / "studio") as studio, aiohttp.ClientSession() as session:
        yield Caller(studio, session)
