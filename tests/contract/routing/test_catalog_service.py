"""CatalogService through its own door: the in-process channel, real messages, real faults."""

from collections.abc import AsyncIterator

import pytest

from libs.faults.fault import Fault
from libs.rpc.channels import Channels
from libs.rpc.faulting import faults_from_rpc
from libs.rpc.loopback import LoopbackRegistry
from libs.rpc.server import RpcServer
from libs.rpc.values import struct_to_dict
from pointsman.common.v1 import subject_pb2
from pointsman.routing.v1 import catalog_pb2 as objects
from pointsman.routing.v1 import catalog_service_pb2 as pb
from pointsman.routing.v1.catalog_service_pb2_grpc import CatalogServiceStub, add_CatalogServiceServicer_to_server
from services.routing.app.catalog_desk import CatalogDesk, CatalogView
from services.routing.app.verify_supply import VerifySupply
from services.routing.servicer.catalog import CatalogServicer
from services.routing.store.catalog_memory import MemoryCatalogStore
from services.routing.store.verifications_memory import MemoryVerifications
from tests.support.worlds import steered_world
from tests.unit.routing.call_stage import call_stage
from tests.unit.routing.catalog_market import MARKET, Dialects, edited
from tests.unit.routing.dispatch_fakes import stage
from tests.unit.routing.specimens import FakeSpecimens

TIMEOUT_S = 10
SUPPLY = subject_pb2.Subject(kind=subject_pb2.SUBJECT_KIND_SUPPLY, id="ark-main/seedance")


@pytest.fixture
async def catalog() -> AsyncIterator[CatalogServiceStub]:
    """A stub of the service over an empty memory store."""
    world, _ = steered_world()
    store = MemoryCatalogStore()
    desk = CatalogDesk(store, CatalogView(store, world.clock), Dialects(), world.clock)
    verify = VerifySupply(stage().desk, store, MemoryVerifications(), FakeSpecimens(), call_stage().desk)

    registry = LoopbackRegistry()
    server = RpcServer(registry=registry)
    server.add(lambda target: add_CatalogServiceServicer_to_server(CatalogServicer(desk, verify), target))
    await server.start()
    async with Channels(registry=registry, caller="edge") as channels:
        yield CatalogServiceStub(channels.to("routing"))
    await server.close()


async def apply(catalog: CatalogServiceStub, text: str = MARKET, merge: bool = False) -> pb.ApplyResponse:
    """Apply a file."""
    async with faults_from_rpc():
        return await catalog.Apply(pb.ApplyRequest(catalog_yaml=text, merge=merge), timeout=TIMEOUT_S)


async def test_apply_answers_revision_changes_and_standings(catalog: CatalogServiceStub):
    """CAT-1, CAT-3: what changed, and of every model whether it is open and why not."""
    text = edited(lambda value: value["supplies"][3].pop("prices"))
    answer = await apply(catalog, text)
    assert answer.revision == 1
    assert len(answer.changes) == 15
    assert [(p.model_id, p.published, list(p.reasons)) for p in answer.publications] == [
        ("pictures", False, ["bindings[0].supply: supply 'other/pictures' has no price rule"]),
        ("seedance-2.0-933", True, []),
    ]


async def test_a_bad_file_is_refused_with_every_path(catalog: CatalogServiceStub):
    """CAT-1, ERR-2: the fault crosses the wire with its code and its errors."""
    with pytest.raises(Fault) as refusal:
        await apply(catalog, edited(lambda value: value["models"][0].update(policy="x", profile="y")))
    assert refusal.value.code == "catalog_invalid"
    assert [error.pointer for error in refusal.value.errors] == ["models[0].policy", "models[0].bindings[2].rule"]
    listed = await catalog.List(pb.ListRequest(), timeout=TIMEOUT_S)
    assert (len(listed.objects), listed.revision) == (0, 0)


async def test_objects_are_read_by_revision_and_listed_by_pages(catalog: CatalogServiceStub):
    """CAT-2: the declaration as in the file, at every revision."""
    await apply(catalog)
    await apply(catalog, edited(lambda value: value["supplies"][0]["limits"].update(concurrency=8)))
    kind = objects.CATALOG_KIND_SUPPLY
    for revision, slots in ((1, 5), (2, 8), (0, 8)):
        request = pb.GetRequest(kind=kind, id="ark-main/seedance", revision=revision)
        found = (await catalog.Get(request, timeout=TIMEOUT_S)).object
        assert struct_to_dict(found.spec)["limits"]["concurrency"] == slots
        assert found.revision == (revision or 2)
    names, token = [], ""
    while True:
        page = await catalog.List(pb.ListRequest(kind=kind, page_size=3, page_token=token), timeout=TIMEOUT_S)
        names += [item.id for item in page.objects]
        token = page.next_page_token
        if not token:
            break
    assert names == ["ark-main/seedance", "other/pictures", "other/seedance", "other/seedance-900"]


@pytest.mark.parametrize(
    "request_, code",
    [
        (pb.GetRequest(kind=objects.CATALOG_KIND_SUPPLY, id="nobody"), "not_found"),
        (pb.GetRequest(id="nobody"), "validation_failed"),
        (pb.ListRequest(page_token="%%%"), "malformed_request"),
        (pb.ListRequest(page_size=1001), "validation_failed"),
        (pb.PublishRequest(model_id="nobody"), "not_found"),
        (pb.SetAdminStateRequest(subject=SUPPLY), "validation_failed"),
        (pb.SetAdminStateRequest(state=objects.ADMIN_STATE_DRAINING), "validation_failed"),
        (pb.DiffRequest(catalog_yaml="a: ["), "catalog_invalid"),
    ],
)
async def test_what_cannot_be_answered_has_its_code(catalog: CatalogServiceStub, request_, code: str):
    """CAT-1, ERR-2: consumers branch on the code."""
    method = getattr(catalog, type(request_).__name__.removesuffix("Request"))
    with pytest.raises(Fault) as refusal:
        async with faults_from_rpc():
            await method(request_, timeout=TIMEOUT_S)
    assert refusal.value.code == code


async def test_publishing_answers_all_reasons(catalog: CatalogServiceStub):
    """CAT-3: a closed gate says everything at once; an open one opens the model."""
    text = edited(
        lambda value: value["models"][1].update(published=False),
        lambda value: [value["models"][0].pop("published"), value["models"][0]["bindings"].pop(0)],
        lambda value: value["degradation_rules"][0].update(published=False),
    )
    await apply(catalog, text)
    with pytest.raises(Fault) as refusal:
        async with faults_from_rpc():
            await catalog.Publish(pb.PublishRequest(model_id="seedance-2.0-933"), timeout=TIMEOUT_S)
    assert (refusal.value.code, len(refusal.value.errors)) == ("catalog_not_publishable", 2)
    opened = await catalog.Publish(pb.PublishRequest(model_id="pictures"), timeout=TIMEOUT_S)
    assert opened.publication.published


async def test_an_operators_word_and_the_models_on_offer(catalog: CatalogServiceStub):
    """CAT-5, OAI-2, TIER-6: a new revision of the Supply; models with prices and possible losses."""
    await apply(catalog)
    request = pb.SetAdminStateRequest(subject=SUPPLY, state=objects.ADMIN_STATE_DRAINING, reason="repairs")
    changed = (await catalog.SetAdminState(request, timeout=TIMEOUT_S)).object
    assert (changed.revision, struct_to_dict(changed.spec)["admin"]) == (2, "draining")
    answer = await catalog.ListModels(pb.ListModelsRequest(tenant="default"), timeout=TIMEOUT_S)
    video = answer.models[1]
    assert (video.id, video.kind, video.profile) == ("seedance-2.0-933", "video", "933")
    assert struct_to_dict(video.limits)["duration_s"] == {"min": 4, "max": 15}
    assert [struct_to_dict(price) for price in video.price_range][1] == {
        "billing_mode": "per_second",
        "currency": "CNY",
        "low": "1.00",
        "high": "2.50",
        "per": "second",
    }
    assert [struct_to_dict(loss) for loss in video.degradations] == [
        {
            "to_profile": "900",
            "drops": ["reference_videos", "reference_audios"],
            "discloses": "Reference videos and audios are ignored.",
        }
    ]
    diff = await catalog.Diff(pb.DiffRequest(catalog_yaml=MARKET), timeout=TIMEOUT_S)
    assert list(diff.changes) == []
