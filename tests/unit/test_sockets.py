"""Unit tests touch no sockets, and that is enforced."""

import asyncio
import socket

import pytest


def test_a_unit_test_cannot_reach_a_socket():
    """Connecting is refused before a packet leaves, so a slow or flaky test cannot hide among the unit tests."""
    with pytest.raises(RuntimeError, match="unit test"), socket.socket() as reaching:
        reaching.connect(("127.0.0.1", 9))


async def test_an_event_loop_needs_no_socket_of_ours():
    """The guard leaves the event loop alone: asynchronous unit tests work."""
    await asyncio.sleep(0)
