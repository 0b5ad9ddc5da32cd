"""A studio on a free port and the real ProviderService over the loopback channel."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp

from libs.blobs.local import LocalBlobs
from libs.faults.fault import Fault
from libs.host.world import real_world
from libs.rpc.channels import Channels
from libs.rpc.faulting import faults_from_rpc
from libs.rpc.loopback import LoopbackRegistry
from libs.rpc.server import RpcServer
from pointsman.provider_adapter.v1 import provider_pb2
from pointsman.provider_adapter.v1 import provider_service_pb2 as pb
from pointsman.provider_adapter.v1.provider_service_pb2_grpc import ProviderServiceStub
from services.provider_adapter.compose import build
from services.provider_adapter.settings import Settings
from services.studio.compose import Studio
from services.studio.settings import Render, StudioConfig
from tests.integration.provider_adapter.desk import Desk, opened_desk

SEEDANCE = "doubao-seedance-2-0-260128"
DIALECTS = {
    "glacier": "minimax",
    "dahlia": "openai",
    "gale": "fal",
    "haze": "replicate",
    "iris": "dashscope",
    "juniper": "openai",
}
CALL_S = 60.0
POLL_S = 0.02


class Rig:
    """The provider adapter as its peers see it, and the lab of the studio that it speaks to."""

    def __init__(self, stub: Any, studio: Studio, session: aiohttp.ClientSession, blobs: LocalBlobs) -> None:
        self.stub = stub
        self.studio = studio
        self.session = session
        self.blobs = blobs
        self.secrets: dict[str, str] = {}

    def channel(self, account: str, **changes: Any) -> provider_pb2.ChannelEndpoint:
        """The channel to a studio account; `changes` are fields of ChannelEndpoint, timeouts in seconds."""
        name = f"KEY_{account.upper()}"
        self.secrets.setdefault(name, self.studio.key(account))
        limits = {key: changes.pop(key) for key in ("connect", "submit", "poll") if key in changes}
        given = {
            "channel_id": f"{account}-main",
            "adapter": DIALECTS.get(account, "ark"),
            "base_url": self.studio.base_url(account),
            "secret_ref": f"env:{name}",
        }
        timeouts = provider_pb2.Timeouts(**{key: _duration(value) for key, value in limits.items()})
        return provider_pb2.ChannelEndpoint(**given | changes, timeouts=timeouts)

    async def submit(self, account: str, job: provider_pb2.ProviderJob, **changes: Any) -> pb.SubmitResponse:
        """One submission."""
        request = pb.SubmitRequest(channel=self.channel(account, **changes), job=job)
        return await self._call(self.stub.Submit(request, timeout=CALL_S))

    async def poll(self, account: str, job: provider_pb2.ProviderJob, task_id: str, **changes: Any) -> pb.PollResponse:
        """One poll."""
        request = pb.PollRequest(channel=self.channel(account, **changes), job=job, provider_task_id=task_id)
        return await self._call(self.stub.Poll(request, timeout=CALL_S))

    async def cancel(
        self, account: str, job: provider_pb2.ProviderJob, task_id: str, **changes: Any
    ) -> pb.CancelResponse:
        """One wish to cancel."""
        request = pb.CancelRequest(channel=self.channel(account, **changes), job=job, provider_task_id=task_id)
        return await self._call(self.stub.Cancel(request, timeout=CALL_S))

    async def reconcile(
        self, account: str, job: provider_pb2.ProviderJob, sent_s_ago: float = 0.0, **changes: Any
    ) -> pb.ReconcileResponse:
        """One look into the records for a submission of that many seconds ago."""
        sent = Timestamp()
        sent.FromNanoseconds(int((time.time() - sent_s_ago) * 1e9))
        request = pb.ReconcileRequest(channel=self.channel(account, **changes), job=job, submit_time=sent)
        return await self._call(self.stub.Reconcile(request, timeout=CALL_S))

    async def finished(self, account: str, job: provider_pb2.ProviderJob, task_id: str) -> pb.PollResponse:
        """Polls until the job has ended."""
        moving = (provider_pb2.JOB_STATE_QUEUED, provider_pb2.JOB_STATE_RUNNING)
        return await self.polled(account, job, task_id, lambda state: state not in moving)

    async def polled(
        self, account: str, job: provider_pb2.ProviderJob, task_id: str, wanted: Callable[[int], bool]
    ) -> pb.PollResponse:
        """Polls until the state is as wanted, for half a minute at most."""
        deadline = time.monotonic() + 30
        while True:
            answer = await self.poll(account, job, task_id)
            if wanted(answer.state):
                return answer
            assert time.monotonic() < deadline, answer
            await asyncio.sleep(POLL_S)

    async def failed_poll(self, account: str, job: provider_pb2.ProviderJob, task_id: str) -> Fault:
        """Polls until a poll itself fails, for half a minute at most."""
        deadline = time.monotonic() + 30
        while True:
            try:
                answer = await self.poll(account, job, task_id)
            except Fault as fault:
                return fault
            assert time.monotonic() < deadline, answer
            await asyncio.sleep(POLL_S)

    async def refusal(self, call: Awaitable[Any]) -> Fault:
        """The fault in which a call ends."""
        with pytest.raises(Fault) as caught:
            await call
        return caught.value

    async def lab(self, method: str, path: str, body: Any = None) -> Any:
        """One request to the studio's control surface."""
        async with self.session.request(method, f"{self.studio.url}/lab{path}", json=body) as answer:
            assert answer.status < 300, await answer.text()
            return await answer.json()

    async def script(self, *then: Mapping[str, Any], **match: str) -> None:
        """One fault rule."""
        await self.lab("POST", "/script", {"match": match, "then": list(then)})

    async def posts(self, account: str) -> int:
        """How many POSTs the account has received."""
        return (await self.lab("GET", f"/ledger?account={account}"))["posts"]["count"]

    async def submissions(self, account: str) -> list[dict[str, Any]]:
        """Every job that the account has accepted."""
        return (await self.lab("GET", f"/ledger?account={account}"))["submissions"]

    @staticmethod
    async def _call(call: Awaitable[Any]) -> Any:
        async with faults_from_rpc():
            return await call


def _duration(seconds: float) -> Duration:
    value = Duration()
    value.FromMilliseconds(int(seconds * 1000))
    return value


def make_job(
    token: str = "token-1", kind: str = "video", model: str = SEEDANCE, **given: Any
) -> provider_pb2.ProviderJob:
    """A job in Pointsman's words."""
    values = Struct()
    values.update(given)
    return provider_pb2.ProviderJob(
        attempt_id=f"attempt-{token}", client_token=token, kind=kind, upstream_model=model, input=values
    )


@pytest.fixture
def job() -> Callable[..., provider_pb2.ProviderJob]:
    """Makes jobs: `job("token", prompt="a storm", duration_s=4)`."""
    return make_job


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    """Everything running."""
    fast = StudioConfig.default().adjusted(queue_s=0.0, render_s=0.0)
    config = replace(fast, render=Render(scale=0.25))
    registry = LoopbackRegistry()
    async with contextlib.AsyncExitStack() as stack:
        studio = await stack.enter_async_context(Studio(config, tmp_path / "studio"))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        channels = await stack.enter_async_context(Channels(registry=registry, caller="routing"))
        rig = Rig(ProviderServiceStub(channels.to("provider_adapter")), studio, session, LocalBlobs(tmp_path / "blobs"))
        settings = Settings(str(tmp_path / "blobs"), settle_s=5.0, environment=rig.secrets)
        context = build(settings, channels, real_world())
        server = RpcServer(registry=registry)
        for _, add in context.registrations:
            server.add(add)
        await context.start()
        stack.push_async_callback(context.stop)
        await server.start()
        stack.push_async_callback(server.close)
        yield rig


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    """The service alone, over loopback."""
    async with opened_desk(tmp_path / "blobs") as desk:
        yield desk
