"""Synchronous calls on record: what their tenant and operators find of them."""

from typing import Any

from pointsman.common.v1 import artifact_pb2
from pointsman.routing.v1 import call_pb2
from pointsman.routing.v1 import routing_service_pb2 as pb
from tests.contract.edge.house import EdgeHouse
from tests.contract.edge.test_problems import check
from tests.contract.edge.values import at

CALLS = "/v1/calls"


def keep(edge: EdgeHouse, call_id: str, tenant: str, ended: float = 2, **changes: Any) -> call_pb2.Call:
    """A call that has ended."""
    model = changes.pop("model", "chat-small")
    call = edge.routing.ended(pb.InvokeRequest(call_id=call_id, tenant=tenant, model=model))
    call.MergeFrom(call_pb2.Call(finish_time=at(ended), **changes))
    return call


async def test_a_tenant_finds_its_failed_calls(edge: EdgeHouse) -> None:
    """EDG-3 AUTH-1: the key's own calls, the newest end first, by model, end, conversation, time and page."""
    keep(edge, "c1", "studio", 10, session_id="talk")
    keep(edge, "c2", "studio", 20, state=call_pb2.CALL_STATE_FAILED)
    keep(edge, "c3", "other", 30)
    keep(edge, "c4", "studio", 40, model="chat-large")
    async with await edge.user("studio", "invoke") as client:

        async def found(**query: str) -> list[str]:
            return [call["id"] for call in (await client.get(CALLS, params=query)).json()["calls"]]

        assert await found() == ["c4", "c2", "c1"]
        assert await found(status="failed,abandoned") == ["c2"]
        assert await found(model="chat-large") == ["c4"]
        assert await found(session_id="talk") == ["c1"]
        assert await found(since="2026-01-01T12:00:20Z", until="2026-01-01T13:00:40+01:00") == ["c2"]
        first = (await client.get(CALLS, params={"page_size": 2})).json()
        assert await found(page_token=first["next_page_token"]) == ["c1"]
        whole = (await client.get(f"{CALLS}/c4")).json()
        assert first["calls"][0] == {name: value for name, value in whole.items() if name != "selections"}
        for query, code in (
            ("status=running", "validation_failed"),
            ("since=yesterday", "validation_failed"),
            ("tenant=other", "validation_failed"),
        ):
            check(await client.get(f"{CALLS}?{query}"), 422, code)


async def test_what_a_list_shows_may_be_read(edge: EdgeHouse) -> None:
    """AUTH-1: files of listed calls are the tenant's to read from then on, and nobody else's."""
    blob = await edge.blobs.put(b"drawn", "image/png")
    keep(edge, "c1", "studio", artifacts=[artifact_pb2.Artifact(sha256=blob.sha256, media_type="image/png")])
    path = f"/v1/artifacts/{blob.sha256}"
    async with await edge.user("studio", "invoke") as owner, await edge.user("other", "invoke") as other:
        check(await owner.get(path), 404, "not_found")
        for client in (owner, other):
            await client.get(CALLS)
        assert (await owner.get(path)).content == b"drawn"
        check(await other.get(path), 404, "not_found")


async def test_an_operator_finds_calls_of_every_tenant(edge: EdgeHouse) -> None:
    """OPS-6: of one tenant or of all, and whose each is; a user's key is refused."""
    keep(edge, "c1", "studio")
    keep(edge, "c2", "other", state=call_pb2.CALL_STATE_FAILED)
    async with await edge.user("ops", "operate") as operator, await edge.user("studio", "invoke") as owner:

        async def found(**query: str) -> list[str]:
            answer = await operator.get("/v1/operator/calls", params=query)
            return [f"{call['tenant']} {call['id']} {call['status']}" for call in answer.json()["calls"]]

        assert await found() == ["other c2 failed", "studio c1 succeeded"]
        assert await found(tenant="studio") == ["studio c1 succeeded"]
        assert await found(tenant="studio", status="failed") == []
        assert (await operator.get(CALLS)).json()["calls"] == [], "its own tenant made none"
        check(await owner.get("/v1/operator/calls"), 403, "forbidden")
