"""Requests per minute, by tenant: counted, told in every answer, refused when used up."""

import pytest

from libs.faults.fault import Fault
from libs.rpc.faulting import faults_from_rpc
from pointsman.edge.v1 import key_service_pb2
from pointsman.edge.v1.key_service_pb2_grpc import KeyServiceStub
from services.edge.app.request_quotas import RequestQuotas
from services.edge.domain.quotas import Quotas
from services.edge.store.memory import MemoryCounts
from tests.contract.edge.house import EdgeHouse
from tests.contract.edge.test_problems import check
from tests.support.waiting import eventually, eventually_async
from tests.support.worlds import steered_world


async def test_a_minute_of_requests(edge: EdgeHouse) -> None:
    """AUTH-2: every answer of a limited tenant tells what is left; one too many is 429 until the minute ends."""
    edge.catalog.quotas["studio"] = {"rpm": 3, "queued_runs": 9}
    edge.clock.advance(20)
    async with await edge.user() as user:
        left = []
        for path, status in (("/v1/runs", 200), ("/v1/runs/none", 404), ("/v1/runs?page_size=0", 422)):
            answer = await user.get(path)
            assert answer.status_code == status
            assert answer.headers["ratelimit-policy"] == '"requests";q=3;w=60'
            left.append(answer.headers["ratelimit"])
        assert left == [f'"requests";r={number};t=40' for number in (2, 1, 0)]
        refused = await user.get("/v1/runs")
        problem = check(refused, 429, "quota_exceeded")
        assert (refused.headers["retry-after"], refused.headers["ratelimit"]) == ("40", '"requests";r=0;t=40')
        assert problem["retryable"]
        assert "3 of 3 requests" in problem["detail"]
        edge.clock.advance(39)
        assert (await user.get("/v1/runs")).headers["retry-after"] == "1"
        edge.clock.advance(1)
        assert (await user.get("/v1/runs")).headers["ratelimit"] == '"requests";r=2;t=60'


async def test_whom_it_does_not_concern(edge: EdgeHouse) -> None:
    """AUTH-2: another tenant, a request without a key, and an operator's work are neither counted nor told of it."""
    edge.catalog.quotas |= {"studio": {"rpm": 1}, "default": {"rpm": 1}, "free": {"rpm": 0}}
    async with edge.admin as admin:
        for _ in range(3):
            answer = await admin.get("/v1/operator/keys")
            assert (answer.status_code, "ratelimit" in answer.headers) == (200, False)
    for tenant in ("other", "free"):
        async with await edge.user(tenant) as user:
            for _ in range(3):
                answer = await user.get("/v1/runs")
                assert (answer.status_code, "ratelimit" in answer.headers) == (200, False)
    async with await edge.user() as user, edge.client() as nobody:
        assert (await nobody.get("/healthz")).status_code == 200
        check(await nobody.get("/v1/runs"), 401, "unauthenticated")
        assert (await user.get("/v1/runs")).status_code == 200
        check(await user.get("/v1/runs"), 429, "quota_exceeded")


async def test_a_quota_changes_with_the_catalogue(edge: EdgeHouse) -> None:
    """AUTH-2: the catalogue is asked once in five seconds of requests; while it is away what it said last holds."""
    async with await edge.user() as user:
        for _ in range(5):
            assert (await user.get("/v1/runs")).status_code == 200
        assert edge.catalog.tenants_asked == 1
        edge.catalog.quotas["studio"] = {"rpm": 2}
        edge.clock.advance(5)

        async def is_told() -> bool:
            return "ratelimit" in (await user.get("/v1/runs")).headers

        await eventually_async(is_told)
        assert [(await user.get("/v1/runs")).status_code for _ in range(2)] == [200, 429]
        assert edge.catalog.tenants_asked == 2
        edge.catalog.refusal = Fault.of("governance_backend_down")
        edge.clock.advance(5)
        await user.get("/v1/runs")
        await eventually(lambda: edge.catalog.tenants_asked == 3)
        assert (await user.get("/v1/runs")).status_code == 429


async def test_a_catalogue_that_never_answered(edge: EdgeHouse) -> None:
    """AUTH-2: a quota that nobody could tell keeps nobody out."""
    edge.catalog.refusal = Fault.of("peer_unavailable")
    async with await edge.user() as user:
        assert (await user.get("/v1/runs")).status_code == 200
        assert (await user.get("/v1/runs")).status_code == 200
    assert edge.catalog.tenants_asked == 1


async def test_calls_over_grpc_count_too(edge: EdgeHouse) -> None:
    """AUTH-2: the public gRPC port asks the edge who calls, and a user's question is one request."""
    edge.catalog.quotas["studio"] = {"rpm": 1}
    _, text = await edge.key()
    stub = KeyServiceStub(edge.channels.to("edge"))
    await stub.Authenticate(key_service_pb2.AuthenticateRequest(secret=text), timeout=5)
    with pytest.raises(Fault) as caught:
        async with faults_from_rpc():
            await stub.Authenticate(key_service_pb2.AuthenticateRequest(secret=text), timeout=5)
    assert caught.value.code == "quota_exceeded"


class _Told:
    """A catalogue of one quota."""

    async def quotas(self) -> dict[str, Quotas]:
        """Thirty a minute."""
        return {"studio": Quotas(rpm=30)}


async def test_replicas_share_a_quota() -> None:
    """AUTH-2: two replicas let in one quota between them, but for what both let in since they last spoke."""
    world, clock = steered_world()
    told, counts = _Told(), MemoryCounts()
    one, other = [RequestQuotas(told, counts, world) for _ in range(2)]

    async def let_in(replica: RequestQuotas, tries: int) -> int:
        return sum([(await replica.admit("studio"))[1] is None for _ in range(tries)])

    async def speaks(replica: RequestQuotas, of_others: int) -> int:
        """A second later one request lets it tell and learn; whether that was let in."""
        clock.advance(1)
        taken = await let_in(replica, 1)
        await eventually(lambda: replica._used["studio"].elsewhere == of_others)
        return taken

    assert await let_in(one, 20) == 20
    assert await let_in(other, 1) == 1
    assert await speaks(one, 1) == 1
    assert await speaks(other, 21) == 1
    assert await let_in(other, 30) == 7, "30 between them"
    assert await speaks(other, 21) == 0
    assert await speaks(one, 9) == 1, "what came in elsewhere during a second is the price"
    assert await let_in(one, 30) == 0
    for replica in (one, other):
        await replica.close()
