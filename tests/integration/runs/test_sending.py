"""Callbacks are sent to a real HTTP server: signed, again where it fails, never where they must not go."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace

import pytest

from libs.client.callbacks import Callback as Told
from libs.client.callbacks import CallbackRefused, verify_callback
from libs.fetching.fetcher import Fetcher, Rules
from libs.kernel.world import World
from services.runs.app.send_callbacks import LEASE_S, OF_ONE_TENANT, SendCallbacks, rotate_secret
from services.runs.domain import hearing
from services.runs.domain.callbacks import Callback, CallbackState
from services.runs.domain.desks import DeskChanges
from services.runs.domain.plan import MAIN
from services.runs.domain.run import Draft, Node, Order, Run, RunState
from services.runs.peers.receivers import HttpReceivers
from services.runs.store.memory import MemoryRuns
from services.runs.store.memory_callbacks import MemoryCallbacks, MemorySecrets
from tests.support.waiting import eventually
from tests.support.webs import PRIVATE, PUBLIC, WEB, ScriptedNames
from tests.support.worlds import SteeredClock, steered_world

END = Draft("run_completed", {"status": "succeeded", "cost": None, "error": None})


@dataclass
class Receiver:
    """A user's server. `statuses` are its answers in turn, the last one for ever; `gate` lets it answer."""

    port: int = 0
    statuses: list[str] = field(default_factory=lambda: ["204 No Content"])
    heard: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, one message."""
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[1:-2]
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        self.heard.append((headers, await reader.readexactly(int(headers["content-length"]))))
        await self.gate.wait()
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        inward = f"Location: http://{PRIVATE}:{self.port}/"
        writer.write(f"HTTP/1.1 {status}\r\n{inward}\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    def told(self, secret: str, clock: SteeredClock) -> list[Told]:
        """What it has heard, verified."""
        return [verify_callback(*message, secret, now=clock.now().timestamp()) for message in self.heard]


class Dying(MemoryCallbacks):
    """A process that is killed between the sending and its record, as often as `deaths` says."""

    deaths = 0

    async def record(self, callback: Callback) -> bool:
        """See the port."""
        if self.deaths:
            self.deaths -= 1
            raise OSError("the process is gone")
        return await super().record(callback)


@dataclass
class Post:
    """A sender over stores in memory, and the receiver."""

    receiver: Receiver
    world: World
    clock: SteeredClock
    runs: MemoryRuns
    callbacks: Dying
    secrets: MemorySecrets
    receivers: HttpReceivers
    sender: SendCallbacks

    async def ended(self, run_id: str, url: str = "", tenant: str = "a") -> None:
        """A Run of the tenant ends, which has named the receiver or another URL."""
        order = Order("clip", {"prompt": "x"}, callback_url=url or f"http://{PUBLIC}:{self.receiver.port}/hook")
        now = self.clock.now()
        run = Run(run_id, tenant, RunState.PENDING, order, {MAIN: Node(MAIN, "generate", "t")}, now)
        kept, _ = await self.runs.add(run, hearing.created(run), "", "f", now)
        await self.runs.save(replace(kept, state=RunState.SUCCEEDED), [END], now, DeskChanges())

    async def sent(self, after_s: float = 0.0) -> None:
        """That much later everything that is due is sent, and its record is kept."""
        self.clock.advance(after_s)
        while await self.sender.tick():
            continue
        await self.sender.stop()

    async def of(self, run_id: str) -> Callback:
        """The newest message about that Run."""
        return (await self.callbacks.of_run(run_id))[0]


@pytest.fixture
async def post() -> AsyncIterator[Post]:
    """A receiver that answers at once, on the address that plays the public world."""
    receiver = Receiver()
    receiver.gate.set()
    world, clock = steered_world()
    runs = MemoryRuns(world.ids)
    callbacks, secrets = Dying(runs), MemorySecrets()
    receivers = HttpReceivers(Fetcher(WEB, ScriptedNames({"inner.example": [[PUBLIC, PRIVATE]]})))
    sender = SendCallbacks(callbacks, secrets, receivers, world, lambda size: bytes(range(size)))
    async with await asyncio.start_server(receiver.serve, PUBLIC, 0) as server:
        receiver.port = server.sockets[0].getsockname()[1]
        yield Post(receiver, world, clock, runs, callbacks, secrets, receivers, sender)
        await sender.stop()
        await receivers.close()


async def test_a_message_arrives_signed(post: Post) -> None:
    """AUTH-5: the receiver verifies it by the tenant's secret and reads the Run's end; it is sent once."""
    secret = await rotate_secret(post.secrets, post.world, lambda size: bytes(size), "a")
    await post.ended("r1")
    await post.sent()
    (told,) = post.receiver.told(secret, post.clock)
    await post.sent(9999)
    assert len(post.receiver.heard) == 1
    assert (told.type, told.data["id"], told.data["status"]) == ("run.completed", "r1", "succeeded")
    headers = post.receiver.heard[0][0]
    assert headers["content-type"] == "application/json"
    assert "authorization" not in headers
    assert (await post.of("r1")).state is CallbackState.DELIVERED


async def test_a_failed_message_is_sent_again(post: Post) -> None:
    """AUTH-5: 500, then 200: the same id and the same bytes come again after the pause, not before."""
    post.receiver.statuses = ["500 Broken", "200 OK"]
    await post.ended("r1")
    await post.sent()
    callback = await post.of("r1")
    assert (callback.state, callback.last_error) == (CallbackState.PENDING, "answered with status 500")
    await post.sent(4.9)
    assert len(post.receiver.heard) == 1
    await post.sent(0.7)
    (first, body), (second, again) = post.receiver.heard
    assert (first["webhook-id"], body) == (second["webhook-id"], again)
    assert first["webhook-timestamp"] != second["webhook-timestamp"]
    assert ((await post.of("r1")).state, (await post.of("r1")).attempts) == (CallbackState.DELIVERED, 2)


async def test_a_crash_between_sending_and_record(post: Post) -> None:
    """AUTH-5: killed after the receiver has taken it: when the lease is over it comes again, under the same id."""
    post.callbacks.deaths = 1
    await post.ended("r1")
    await post.sent()
    assert (await post.of("r1")).state is CallbackState.PENDING
    await post.sent(LEASE_S - 1)
    assert len(post.receiver.heard) == 1
    await post.sent(1)
    assert len({headers["webhook-id"] for headers, _ in post.receiver.heard}) == 1
    assert len(post.receiver.heard) == 2
    assert (await post.of("r1")).state is CallbackState.DELIVERED


async def test_both_secrets_sign_while_they_change(post: Post) -> None:
    """AUTH-5: after a change the secret before still verifies; after two it does not."""
    old, new, newest = [
        await rotate_secret(post.secrets, post.world, lambda size, byte=byte: bytes([byte]) * size, "a")
        for byte in (1, 2, 3)
    ]
    await post.ended("r1")
    await post.sent()
    assert len(post.receiver.told(new, post.clock)) == len(post.receiver.told(newest, post.clock)) == 1
    with pytest.raises(CallbackRefused, match="no signature"):
        post.receiver.told(old, post.clock)


async def test_a_tenant_without_a_secret(post: Post) -> None:
    """AUTH-5: every message is signed, also before anybody has asked for the secret."""
    await post.ended("r1")
    await post.sent()
    (known,) = await post.secrets.of("a", 2)
    assert len(post.receiver.told(known, post.clock)) == 1


@pytest.mark.parametrize("host", [PRIVATE, "localhost", "169.254.169.254", "inner.example"])
async def test_private_addresses_are_never_reached(post: Post, host: str) -> None:
    """AUTH-4, AUTH-5: loopback, link-local and a name that leads there are given up at once, with the reason."""
    await post.ended("r1", f"http://{host}:{post.receiver.port}/hook")
    await post.sent()
    callback = await post.of("r1")
    assert callback.state is CallbackState.GIVEN_UP
    assert callback.last_error.startswith("the callback_url leads to")
    assert post.receiver.heard == []


async def test_the_products_own_rules_refuse_this_machine(post: Post) -> None:
    """AUTH-4: by default nothing of this machine is reached, though it listens there."""
    guarded = HttpReceivers(Fetcher(Rules()))
    sent = await guarded.send(f"http://{PUBLIC}:{post.receiver.port}/hook", b"{}", {})
    await guarded.close()
    assert sent.final
    assert post.receiver.heard == []


async def test_no_redirect_is_followed(post: Post) -> None:
    """AUTH-4, AUTH-5: a redirect is a failure; what it names is not called."""
    post.receiver.statuses = ["307 Elsewhere"]
    await post.ended("r1")
    await post.sent()
    assert (await post.of("r1")).last_error == "answered with status 307"
    assert len(post.receiver.heard) == 1


async def test_a_slow_receiver_holds_up_its_own_tenant_alone(post: Post) -> None:
    """AUTH-5: while one tenant's server does not answer, another's messages are sent."""
    post.receiver.gate.clear()
    for number in range(3 * OF_ONE_TENANT):
        await post.ended(f"slow-{number:02}", tenant="slow")
    while await post.sender.tick():
        continue
    await eventually(lambda: len(post.receiver.heard) >= OF_ONE_TENANT)
    await post.ended("r1", tenant="quick")
    await post.sender.tick()
    await eventually(lambda: any(json.loads(body)["data"]["id"] == "r1" for _, body in post.receiver.heard))
    assert len(post.receiver.heard) <= 2 * OF_ONE_TENANT + 1
    post.receiver.gate.set()
    await post.sender.stop()
