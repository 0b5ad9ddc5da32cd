"""Who may do what: keys, scopes, and walls between tenants."""

import logging
from collections.abc import Mapping
from typing import Any

import pytest

from libs.faults.fault import Fault
from libs.rpc.faulting import faults_from_rpc
from libs.telemetry.correlation import facts
from pointsman.edge.v1 import key_service_pb2
from pointsman.edge.v1.key_service_pb2_grpc import KeyServiceStub
from tests.contract.edge.house import ADMIN_KEY, EdgeHouse
from tests.contract.edge.test_problems import check
from tests.contract.edge.test_runs import ORDER
from tests.support.media import picture

USER_ROUTES = [
    ("GET", "/v1/runs"), ("POST", "/v1/runs"), ("GET", "/v1/runs/r1"), ("GET", "/v1/runs/r1/join"),
    ("GET", "/v1/runs/r1/events"), ("GET", "/v1/runs/r1/stream"), ("POST", "/v1/runs/r1/cancel"),
    ("GET", "/v1/tasks/t1"), ("GET", "/v1/tasks/t1/selections"), ("GET", "/v1/models"), ("GET", "/v1/models/clip"),
    ("POST", "/v1/artifacts"), ("GET", f"/v1/artifacts/{'ab' * 32}"), ("GET", "/v1/calls/c1"),
    ("POST", "/v1/chat/completions"), ("POST", "/v1/embeddings"), ("POST", "/v1/images/generations"),
    ("POST", "/v1/audio/speech"), ("POST", "/v1/invoke"), ("POST", "/v1/ocr"),
]  # fmt: skip
OPERATOR_ROUTES = [
    ("GET", "/v1/operator/health"), ("GET", "/v1/operator/capacity"), ("GET", "/v1/operator/alerts"),
    ("GET", "/v1/operator/uncertain"), ("GET", "/v1/operator/catalog"), ("POST", "/v1/operator/catalog:apply"),
    ("POST", "/v1/operator/catalog:diff"), ("POST", "/v1/operator/models/clip:publish"),
    ("POST", "/v1/operator/supplies/a%2Fb:disable"), ("POST", "/v1/operator/channels/a:drain"),
    ("POST", "/v1/operator/supplies/a%2Fb:close-circuit"), ("POST", "/v1/operator/channels/a:open-circuit"),
    ("POST", "/v1/operator/attempts/a1/resolve"),
]  # fmt: skip
ADMIN_ROUTES = [
    ("GET", "/v1/operator/keys"), ("POST", "/v1/operator/keys"), ("DELETE", "/v1/operator/keys/k1"),
    ("POST", "/v1/operator/keys/k1:rotate"),
]  # fmt: skip
FOREIGN_ROUTES = [
    ("GET", "/v1/runs/r1"), ("GET", "/v1/runs/r1/join"), ("GET", "/v1/runs/r1/events"), ("GET", "/v1/runs/r1/stream"),
    ("POST", "/v1/runs/r1/cancel"), ("GET", "/v1/tasks/t1"), ("GET", "/v1/tasks/t1/selections"),
    ("GET", f"/v1/artifacts/{'ab' * 32}"),
]  # fmt: skip


@pytest.mark.parametrize("method, path", USER_ROUTES + OPERATOR_ROUTES + ADMIN_ROUTES)
async def test_every_route_wants_a_key(edge: EdgeHouse, method: str, path: str) -> None:
    """AUTH-1: without a valid key every route under /v1 is 401 with a challenge, before anything else is looked at."""
    for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "Basic x"}, {"authorization": "Bearer "}):
        async with edge.client(**headers) as client:
            answer = await client.request(method, path)
        problem = check(answer, 401, "unauthenticated")
        assert "redacted" not in problem["detail"]
        assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize("method, path", OPERATOR_ROUTES + ADMIN_ROUTES)
async def test_users_do_not_operate(edge: EdgeHouse, method: str, path: str) -> None:
    """AUTH-1: a key without the scope is 403 forbidden, and nothing happens."""
    async with await edge.user("studio", "runs", "invoke") as client:
        check(await client.request(method, path), 403, "forbidden")
    assert edge.catalog.admin == []
    assert edge.routing.resolved == []


@pytest.mark.parametrize("method, path", ADMIN_ROUTES)
async def test_operators_make_no_keys(edge: EdgeHouse, method: str, path: str) -> None:
    """AUTH-1: keys are the admin's alone."""
    async with await edge.user("studio", "operate") as client:
        check(await client.request(method, path), 403, "forbidden")


async def test_operators_make_no_runs(edge: EdgeHouse) -> None:
    """AUTH-1: a scope is not a rank: `operate` alone creates nothing for a tenant."""
    async with await edge.user("studio", "operate") as client:
        check(await client.post("/v1/runs", json=ORDER), 403, "forbidden")
    assert edge.runs.created == []


@pytest.mark.parametrize("method, path", FOREIGN_ROUTES)
async def test_foreign_things_do_not_exist(edge: EdgeHouse, method: str, path: str) -> None:
    """AUTH-1: another tenant's run, task, stream or artifact is not found, in the words of one that never was."""
    edge.runs.add("r1", "owner")
    edge.routing.add("t1", "owner")
    blob = await edge.blobs.put(b"theirs", "video/mp4")
    path = path.replace("ab" * 32, blob.sha256)
    async with await edge.user("owner") as owner:
        assert (await owner.get("/v1/runs/r1")).status_code == 200
    async with await edge.user("stranger") as client:
        foreign = check(await client.request(method, path), 404, "not_found")
        missing = path.replace("r1", "r2").replace("t1", "t2").replace(blob.sha256, "cd" * 32)
        never = check(await client.request(method, missing), 404, "not_found")
    same = never["detail"].replace("r2", "r1").replace("t2", "t1").replace("cd" * 32, blob.sha256)
    assert foreign["detail"] == same
    assert edge.runs.runs["r1"].state == 1


async def test_models_are_those_of_the_tenant(edge: EdgeHouse) -> None:
    """AUTH-1: the list of models is asked for the key's tenant."""
    edge.catalog.models["poor"] = ["small"]
    async with await edge.user("poor") as client:
        assert [model["id"] for model in (await client.get("/v1/models")).json()["data"]] == ["small"]
        assert (await client.get("/v1/models/small")).json()["object"] == "model"
        check(await client.get("/v1/models/clip"), 404, "model_not_published")


async def test_keys_are_shown_once_and_stored_hashed(edge: EdgeHouse) -> None:
    """AUTH-1: the answer to a creation alone holds the key; the list tells tenant, scopes and times."""
    key_id, text = await edge.key("studio", "runs", "operate", expires_at="2026-01-02T00:00:00Z")
    assert text.startswith(f"pm_{key_id}_")
    async with edge.admin as admin:
        listed = await admin.get("/v1/operator/keys")
        assert text not in listed.text
        assert text.split("_", 2)[2] not in listed.text
        assert listed.json()["keys"] == [
            {
                "id": key_id,
                "tenant": "studio",
                "scopes": ["operate", "runs"],
                "created_at": "2026-01-01T12:00:00Z",
                "expires_at": "2026-01-02T00:00:00Z",
                "revoked_at": None,
                "former_until": None,
            }
        ]
        assert (await admin.get("/v1/operator/keys", params={"tenant": "other"})).json()["keys"] == []


@pytest.mark.parametrize(
    "body, pointer",
    [
        ({"scopes": ["runs"]}, "/tenant"),
        ({}, "/scopes /tenant"),
        ({"tenant": "a", "scopes": ["runs"], "expires_at": "2030-01-01T00:00:00"}, "/expires_at"),
        ({"tenant": "a b", "scopes": ["runs"]}, "/tenant"),
        ({"tenant": "a", "scopes": []}, "/scopes"),
        ({"tenant": "a", "scopes": ["root"]}, "/scopes/0"),
        ({"tenant": "a", "scopes": "runs"}, "/scopes"),
        ({"tenant": "a", "scopes": ["runs"], "expires_at": "soon"}, "/expires_at"),
        ({"tenant": "a", "scopes": ["runs"], "expires_at": "2020-01-01T00:00:00Z"}, "/expires_at"),
        ({"tenant": "a", "scopes": ["runs"], "name": "x"}, "/name"),
    ],
)
async def test_keys_that_cannot_be(edge: EdgeHouse, body: dict[str, object], pointer: str) -> None:
    """EDG-1: a key for no tenant, without scopes, with an end in the past or in no time zone is refused by pointer."""
    async with edge.admin as admin:
        problem = check(await admin.post("/v1/operator/keys", json=body), 422, "validation_failed")
    assert [error["pointer"] for error in problem["errors"]] == pointer.split()


async def test_revoked_keys_end_at_once_here(edge: EdgeHouse) -> None:
    """AUTH-1: a revoked key is 401 at the replica that was told, also when its answer was still remembered."""
    key_id, text = await edge.key()
    async with edge.client(text) as client, edge.admin as admin:
        assert (await client.get("/v1/runs")).status_code == 200
        assert (await admin.delete(f"/v1/operator/keys/{key_id}")).status_code == 204
        assert "revoked" in check(await client.get("/v1/runs"), 401, "unauthenticated")["detail"]
        assert (await admin.delete(f"/v1/operator/keys/{key_id}")).status_code == 204
        check(await admin.delete("/v1/operator/keys/none"), 404, "not_found")
        check(await admin.delete("/v1/operator/keys/admin"), 409, "conflict")


async def test_a_key_is_given_a_new_secret(edge: EdgeHouse) -> None:
    """AUTH-1: a rotated key keeps id, tenant and scopes; its old text ends at once, or after the grace asked for."""
    key_id, first = await edge.key()
    path = f"/v1/operator/keys/{key_id}:rotate"
    async with edge.admin as admin:
        assert (await edge.client(first).get("/v1/runs")).status_code == 200
        second = (await admin.post(path, json={"grace_s": 3600})).json()
        assert second["id"] == key_id
        assert second["key"] != first
        for text in (first, second["key"]):
            assert (await edge.client(text).get("/v1/runs")).status_code == 200
        (record,) = (await admin.get("/v1/operator/keys")).json()["keys"]
        assert record["former_until"] == "2026-01-01T13:00:00Z"
        edge.clock.advance(3600)
        check(await edge.client(first).get("/v1/runs"), 401, "unauthenticated")
        third = (await admin.post(path)).json()["key"]
        problem = check(await edge.client(second["key"]).get("/v1/runs"), 401, "unauthenticated")
        assert "a new secret" in problem["detail"]
        assert (await edge.client(third).get("/v1/runs")).status_code == 200
        for grace in (-1, 30 * 86_400 + 1, "x"):
            problem = check(await admin.post(path, json={"grace_s": grace}), 422, "validation_failed")
            assert problem["errors"][0]["pointer"] == "/grace_s"
        check(await admin.post("/v1/operator/keys/none:rotate"), 404, "not_found")
        check(await admin.post("/v1/operator/keys/admin:rotate"), 409, "conflict")
        await admin.delete(f"/v1/operator/keys/{key_id}")
        check(await admin.post(path), 409, "conflict")
        check(await edge.client(third).get("/v1/runs"), 401, "unauthenticated")


async def test_a_former_secret_does_not_outlive_its_key(edge: EdgeHouse) -> None:
    """AUTH-1: neither a grace longer than the key nor a second rotation prolongs a text."""
    key_id, first = await edge.key(expires_at="2026-01-01T12:00:10Z")
    async with edge.admin as admin:
        path = f"/v1/operator/keys/{key_id}:rotate"
        second = (await admin.post(path, json={"grace_s": 60})).json()["key"]
        assert (await edge.client(first).get("/v1/runs")).status_code == 200
        await admin.post(path, json={"grace_s": 60})
        check(await edge.client(first).get("/v1/runs"), 401, "unauthenticated")
        assert (await edge.client(second).get("/v1/runs")).status_code == 200
        edge.clock.advance(10)
        check(await edge.client(second).get("/v1/runs"), 401, "unauthenticated")


async def test_keys_expire(edge: EdgeHouse) -> None:
    """AUTH-1: a key ends at its time, also when its answer was remembered the moment before."""
    _, text = await edge.key(expires_at="2026-01-01T12:00:10Z")
    async with edge.client(text) as client:
        edge.clock.advance(9.5)
        assert (await client.get("/v1/runs")).status_code == 200
        edge.clock.advance(0.5)
        assert "expired" in check(await client.get("/v1/runs"), 401, "unauthenticated")["detail"]


async def test_a_key_with_a_changed_secret_is_unknown(edge: EdgeHouse) -> None:
    """AUTH-1: the id in a key proves nothing."""
    key_id, text = await edge.key()
    forged = f"pm_{key_id}_{'A' * 43}"
    assert forged != text
    async with edge.client(forged) as client:
        check(await client.get("/v1/runs"), 401, "unauthenticated")


async def test_keys_over_grpc(edge: EdgeHouse) -> None:
    """AUTH-1: KeyService makes, lists, recognises and ends keys as the HTTP side does."""
    stub = KeyServiceStub(edge.channels.to("edge"))
    made = await stub.CreateKey(key_service_pb2.CreateKeyRequest(tenant="studio", scopes=["runs"]), timeout=5)
    known = await stub.Authenticate(key_service_pb2.AuthenticateRequest(secret=made.secret), timeout=5)
    assert (known.key.id, known.key.tenant, list(known.key.scopes)) == (made.key.id, "studio", ["runs"])
    admin = await stub.Authenticate(key_service_pb2.AuthenticateRequest(secret=ADMIN_KEY), timeout=5)
    assert (admin.key.tenant, len(admin.key.scopes)) == ("default", 4)
    listed = await stub.ListKeys(key_service_pb2.ListKeysRequest(), timeout=5)
    assert [key.id for key in listed.keys] == [made.key.id]
    async with edge.client(made.secret) as client:
        assert (await client.get("/v1/runs")).status_code == 200
    turned = await stub.RotateKey(key_service_pb2.RotateKeyRequest(key_id=made.key.id, grace={"seconds": 9}), timeout=5)
    assert turned.key.former_expire_time.ToSeconds() == edge.clock.now().timestamp() + 9
    for secret in (made.secret, turned.secret):
        known = await stub.Authenticate(key_service_pb2.AuthenticateRequest(secret=secret), timeout=5)
        assert known.key.id == made.key.id
    ended = await stub.RevokeKey(key_service_pb2.RevokeKeyRequest(key_id=made.key.id), timeout=5)
    assert ended.key.HasField("revoke_time")
    with pytest.raises(Fault) as caught:
        async with faults_from_rpc():
            await stub.Authenticate(key_service_pb2.AuthenticateRequest(secret=made.secret), timeout=5)
    assert caught.value.code == "unauthenticated"


async def test_a_list_of_fewer_than_no_keys_is_refused(edge: EdgeHouse) -> None:
    """EDG-3: over gRPC too a size that cannot be is named, and is no bug of ours."""
    stub = KeyServiceStub(edge.channels.to("edge"))
    with pytest.raises(Fault) as caught:
        async with faults_from_rpc():
            await stub.ListKeys(key_service_pb2.ListKeysRequest(page_size=-1), timeout=5)
    assert (caught.value.code, caught.value.errors[0].pointer) == ("validation_failed", "/page_size")


async def test_the_log_tells_whose_request_was_refused(edge: EdgeHouse) -> None:
    """AUTH-1: whoever knocks at doors that are not his own is named by tenant and key in the log."""
    seen: list[Mapping[str, str]] = []

    class Watch(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append(facts())

    log, watch = logging.getLogger("services.edge.routes.shell"), Watch()
    before = log.level
    key_id, text = await edge.key("studio", "runs")
    log.addHandler(watch)
    log.setLevel(logging.INFO)
    try:
        async with edge.client(text) as client:
            check(await client.get("/v1/operator/keys"), 403, "forbidden")
    finally:
        log.removeHandler(watch)
        log.setLevel(before)
    assert [(told["tenant"], told["key_id"]) for told in seen] == [("studio", key_id)]


async def test_a_decision_brings_no_address_inside(edge: EdgeHouse) -> None:
    """AUTH-4: what a person changes of an input is judged as what an order brings, before anything is decided."""
    path, change = "/v1/operator/reviews/q1/decide", {"decision": "change_input"}
    async with edge.admin as admin:
        inside = {**change, "input": {"node": "shot", "first_frame": {"url": "http://127.0.0.1/a.png"}}}
        problem = check(await admin.post(path, json=inside), 422, "url_not_allowed")
        assert [error["pointer"] for error in problem["errors"]] == ["/input/first_frame/url"]
        assert edge.reviews.decided == []
        blob = await edge.blobs.put(picture(), "image/png")
        own = {**change, "input": {"node": "shot", "first_frame": {"artifact": blob.sha256}}}
        assert (await admin.post(path, json=own)).status_code == 200
    (asked,) = edge.reviews.decided
    assert (asked.input["node"], asked.input["first_frame"]["artifact"]) == ("shot", blob.sha256)


@pytest.mark.parametrize(
    "path, body, pointer",
    [
        ("redrive", {"node": "main", "input": {"reference_images": [{"artifact": "0" * 64}]}}, "/input"),
        ("redrive/preview", {"node": "main", "input": {"reference_images": [{"artifact": "0" * 64}]}}, "/input"),
        ("steer", {"kind": "look", "data": {"value": {"reference_images": [{"artifact": "0" * 64}]}}}, "/data/value"),
    ],
)
async def test_a_command_brings_no_file_of_others(
    edge: EdgeHouse, path: str, body: dict[str, Any], pointer: str
) -> None:
    """AUTH-1: what a command brings is judged as what an order brings."""
    user = await edge.user()
    edge.runs.add("r1")
    answer = await user.post(f"/v1/runs/r1/{path}", json=body)
    told = [{"pointer": f"{pointer}/reference_images/0/artifact", "reason": "no such artifact"}]
    assert (answer.status_code, answer.json()["errors"]) == (422, told)
