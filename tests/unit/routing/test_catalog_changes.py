"""Applying, publishing and an operator's word, over the memory store."""

import asyncio
from dataclasses import replace

import pytest

from libs.faults.fault import Fault
from services.routing.app.apply_catalog import apply_catalog
from services.routing.app.catalog_desk import CatalogDesk, CatalogView
from services.routing.app.diff_catalog import diff_catalog
from services.routing.app.list_models import list_models
from services.routing.app.publish_model import publish_model
from services.routing.app.set_admin_state import set_admin_state
from services.routing.domain.catalog import Admin, Binding, Catalog, Kind, Model, Tier
from services.routing.domain.catalog_file import ObjectKind
from services.routing.domain.disclosure import price_ranges
from services.routing.store.catalog_memory import MemoryCatalogStore
from tests.unit.routing.catalog_market import MARKET, NOW, Dialects, StillClock, edited, new_desk


@pytest.fixture
def dialects() -> Dialects:
    """What provider_adapter says."""
    return Dialects()


@pytest.fixture
def clock() -> StillClock:
    """Time that stands."""
    return StillClock()


@pytest.fixture
def desk(dialects: Dialects, clock: StillClock) -> CatalogDesk:
    """A desk over an empty memory store."""
    return new_desk(clock, dialects)


def model(value, index=0):
    """A model of the market."""
    return value["models"][index]


def standings(plan) -> dict[str, bool]:
    """Which model is open."""
    return {standing.model: standing.published for standing in plan.standings}


async def test_a_good_file_is_in_force_at_once(desk: CatalogDesk):
    """CAT-1: everything is created in one revision, and dispatch reads it."""
    plan = await apply_catalog(desk, MARKET, merge=False)
    assert {change.change for change in plan.changes} == {"created"}
    assert standings(plan) == {"seedance-2.0-933": True, "pictures": True}
    catalog = await desk.view.current()
    assert (catalog.revision, len(catalog.supplies), catalog.models["pictures"].published) == (1, 4, True)


async def test_a_bad_file_changes_nothing_and_names_every_fault(desk: CatalogDesk):
    """CAT-1: all or nothing; the refusal carries every path."""
    await apply_catalog(desk, MARKET, merge=False)
    bad = edited(
        lambda value: model(value)["bindings"][0].update(supply="x"),
        lambda value: value["supplies"][1].update(upstream_model="changed"),
    )
    with pytest.raises(Fault) as refusal:
        await apply_catalog(desk, bad, merge=False)
    assert refusal.value.code == "catalog_invalid"
    assert [(e.pointer, e.reason) for e in refusal.value.errors] == [("models[0].bindings[0].supply", "no supply 'x'")]
    assert refusal.value.message == "models[0].bindings[0].supply: no supply 'x'"
    assert (await desk.store.revision(), (await desk.view.current()).supplies["other/seedance"].upstream_model) == (
        1,
        "seedance",
    )


async def test_text_that_is_no_yaml_is_refused_in_the_same_way(desk: CatalogDesk):
    """CAT-1: broken text is a bad file, not a crash."""
    with pytest.raises(Fault) as refusal:
        await apply_catalog(desk, "a: [", merge=False)
    assert refusal.value.code == "catalog_invalid"


async def test_the_same_file_again_changes_nothing(desk: CatalogDesk):
    """CAT-2: no change, no revision; every start applies its file again."""
    await apply_catalog(desk, MARKET, merge=False)
    again = await apply_catalog(desk, MARKET, merge=False)
    assert (again.changes, again.holdings.revision) == ((), 1)
    assert standings(again) == {"seedance-2.0-933": True, "pictures": True}


async def test_only_what_changed_gets_a_new_revision(desk: CatalogDesk):
    """CAT-2: an object's revision rises with its own changes alone, and the change says what differs."""
    await apply_catalog(desk, MARKET, merge=False)
    text = edited(lambda value: value["supplies"][0]["limits"].update(concurrency=8))
    plan = await apply_catalog(desk, text, merge=False)
    assert [(c.kind, c.id, c.change, c.details) for c in plan.changes] == [
        (ObjectKind.SUPPLY, "ark-main/seedance", "changed", ("limits.concurrency: 5 -> 8",))
    ]
    assert plan.catalog.supplies["ark-main/seedance"].revision == 2
    assert plan.catalog.supplies["other/seedance"].revision == 1
    assert standings(plan) == {"seedance-2.0-933": True, "pictures": True}


async def test_what_an_attempt_used_stays_readable(desk: CatalogDesk):
    """CAT-2: an older revision is read back as it was, object by object and whole."""
    await apply_catalog(desk, MARKET, merge=False)
    await apply_catalog(desk, edited(lambda value: value["supplies"][0]["limits"].update(concurrency=8)), merge=False)
    assert (await desk.view.at(1)).supplies["ark-main/seedance"].limits.concurrency == 5
    assert (await desk.view.at(2)).supplies["ark-main/seedance"].limits.concurrency == 8
    old = await desk.store.object(ObjectKind.SUPPLY, "ark-main/seedance", 1)
    assert old is not None
    assert old.spec["limits"]["concurrency"] == 5
    with pytest.raises(Fault) as missing:
        await desk.view.at(9)
    assert missing.value.code == "not_found"


async def test_what_the_file_no_longer_names_is_retired_and_merge_keeps_it(desk: CatalogDesk):
    """CAT-1: applying is declarative; `merge` leaves the rest as it is and may refer to it."""
    await apply_catalog(desk, MARKET, merge=False)
    without = edited(lambda value: value["models"].pop(1), lambda value: value.pop("tenants"))
    gone = await apply_catalog(desk, without, merge=False)
    assert {(c.id, c.change) for c in gone.changes} == {("pictures", "retired"), ("studio-a", "retired")}
    assert "pictures" not in gone.catalog.models
    only = {
        "version": 1,
        "models": [
            {"id": "pictures", "kind": "image", "policy": "stable", "published": True,
             "bindings": [{"supply": "other/pictures", "tier": "exact"}]},
        ],
    }  # fmt: skip
    back = await apply_catalog(desk, str(only).replace("True", "true").replace("'", '"'), merge=True)
    assert [(c.id, c.change) for c in back.changes] == [("pictures", "created")]
    assert back.catalog.models["pictures"].revision == 3, "its history goes on"
    assert "seedance-2.0-933" in back.catalog.models


async def test_currency_and_rates_belong_to_the_revision(desk: CatalogDesk):
    """CAT-2, COST-3: a new rate alone is a new revision; merging a file that names no currency keeps both."""
    await apply_catalog(desk, edited(lambda value: value.update(currency="USD", fx={"CNY": "0.14"})), merge=False)
    plan = await apply_catalog(
        desk, edited(lambda value: value.update(currency="USD", fx={"CNY": "0.15"})), merge=False
    )
    assert (plan.changes, plan.catalog.revision, str(plan.catalog.fx["CNY"])) == ((), 2, "0.15")
    assert all(standings(plan).values())
    plan = await apply_catalog(desk, "version: 1\ntenants: [{id: t}]", merge=True)
    assert (plan.catalog.currency, str(plan.catalog.fx["CNY"])) == ("USD", "0.15")
    assert str((await desk.view.at(1)).fx["CNY"]) == "0.14"


async def test_a_changed_binding_or_policy_closes_the_model_until_it_is_published_again(desk: CatalogDesk):
    """CAT-3: saving a binding or a policy clears enabled and published; publishing is a separate act."""
    quiet = edited(lambda value: [m.pop("published") for m in value["models"]])
    plan = await apply_catalog(desk, quiet, merge=False)
    assert standings(plan) == {"seedance-2.0-933": False, "pictures": False}
    await publish_model(desk, "seedance-2.0-933")
    await publish_model(desk, "pictures")
    rebound = edited(
        lambda value: [m.pop("published") for m in value["models"]],
        lambda value: model(value)["bindings"][1].update(priority=7),
    )
    plan = await apply_catalog(desk, rebound, merge=False)
    assert standings(plan) == {"seedance-2.0-933": False, "pictures": True}
    assert not plan.catalog.models["seedance-2.0-933"].published
    await publish_model(desk, "seedance-2.0-933")
    other_policy = edited(
        lambda value: [m.pop("published") for m in value["models"]],
        lambda value: model(value)["bindings"][1].update(priority=7),
        lambda value: value["policies"][0].update(min_samples=30),
    )
    plan = await apply_catalog(desk, other_policy, merge=False)
    assert standings(plan) == {"seedance-2.0-933": False, "pictures": False}


async def test_applying_the_same_file_again_keeps_what_was_published_by_hand(desk: CatalogDesk):
    """CAT-3: a restart that applies its file overrules no operator."""
    quiet = edited(lambda value: [m.update(published=False) for m in value["models"]])
    await apply_catalog(desk, quiet, merge=False)
    await publish_model(desk, "pictures")
    plan = await apply_catalog(desk, quiet, merge=False)
    assert (plan.changes, plan.catalog.models["pictures"].published) == ((), True)


GATE = [
    (lambda v: model(v)["bindings"].pop(0), "bindings: at least one exact supply is needed"),
    (lambda v: v["supplies"][1].pop("prices"), "bindings[1].supply: supply 'other/seedance' has no price rule"),
    (lambda v: v["degradation_rules"][0].update(verified=False), "bindings[2].rule: rule 'r933-900' is not verified"),
    (
        lambda v: v["degradation_rules"][0].update(verified=False, published=False),
        "bindings[2].rule: rule 'r933-900' is not verified and not published",
    ),
    (
        lambda v: v["policies"][0].update(emergency_availability=True, emergency_cost_limit="10.00"),
        "policy: stable: emergency_cost_limit is below absolute_cost_limit: an emergency would admit less than a "
        "normal day",
    ),
    (lambda v: model(v).update(enabled=False), "enabled: the declaration says enabled: false"),
    (
        lambda v: [v["supplies"][1].pop(name) for name in ("evidence", "evidence_reason")],
        "bindings[1].supply: supply 'other/seedance' is a fallback one, needs evidence and has none: run `pointsman "
        "supply verify other/seedance`, or set `evidence: waived` with an evidence_reason",
    ),
]


@pytest.mark.parametrize("edit, reason", GATE)
async def test_what_fails_the_gate_stays_closed_and_says_why(desk: CatalogDesk, edit, reason):
    """CAT-3, CAT-7: the file is in force, the model stays unpublished with its reasons, and publishing answers them."""
    plan = await apply_catalog(desk, edited(edit), merge=False)
    standing = next(s for s in plan.standings if s.model == "seedance-2.0-933")
    assert not standing.published
    assert reason in standing.words()
    assert not plan.catalog.models["seedance-2.0-933"].published
    with pytest.raises(Fault) as refusal:
        await publish_model(desk, "seedance-2.0-933")
    assert refusal.value.code == "catalog_not_publishable"
    assert reason in refusal.value.message


async def test_a_second_exact_supply_needs_evidence_and_a_single_one_none(desk: CatalogDesk):
    """CAT-7: an exact Supply that stands in for nothing needs no evidence."""
    text = edited(
        lambda v: model(v)["bindings"][1].update(tier="exact"),
        lambda v: [v["supplies"][1].pop(name) for name in ("evidence", "evidence_reason")],
    )
    plan = await apply_catalog(desk, text, merge=False)
    words = next(s for s in plan.standings if s.model == "seedance-2.0-933").words()
    assert len(words) == 1
    assert words[0].startswith("bindings[1].supply: supply 'other/seedance' is a second exact one")


async def test_a_secret_that_cannot_be_read_closes_the_gate(desk: CatalogDesk, dialects: Dialects):
    """CAT-3: every secret must be resolvable; once it is, the same file publishes."""
    dialects.unresolved = {"env:OTHER_KEY": "OTHER_KEY is not set"}
    plan = await apply_catalog(desk, MARKET, merge=False)
    assert standings(plan) == {"seedance-2.0-933": False, "pictures": False}
    reasons = next(s for s in plan.standings if s.model == "pictures").words()
    assert reasons == (
        "bindings[0].supply: secret env:OTHER_KEY of channel 'other' cannot be read: OTHER_KEY is not set",
    )
    dialects.unresolved = {}
    assert standings(await apply_catalog(desk, MARKET, merge=False)) == {"seedance-2.0-933": True, "pictures": True}


async def test_nothing_is_published_unseen(desk: CatalogDesk, dialects: Dialects):
    """CAT-3: while provider_adapter is silent the file is in force and no new model opens; open ones stay open."""
    dialects.away = True
    plan = await apply_catalog(desk, MARKET, merge=False)
    assert not any(standings(plan).values())
    dialects.away = False
    await apply_catalog(desk, MARKET, merge=False)
    dialects.away = True
    assert all(standings(await apply_catalog(desk, MARKET, merge=False)).values())


async def test_an_unknown_adapter_is_an_assembly_fault(desk: CatalogDesk):
    """CAT-6: it surfaces at once, by name."""
    with pytest.raises(Fault) as refusal:
        await apply_catalog(desk, edited(lambda v: v["channels"][0].update(adapter="fax")), merge=False)
    assert "channels[0].adapter: source_not_configured: no adapter 'fax'" in refusal.value.message
    assert not refusal.value.retryable


async def test_an_operators_word_stands_until_the_file_changes_its_own(desk: CatalogDesk):
    """CAT-5, CAT-2: a new revision of the object; the same file leaves it, a changed word of the file takes over."""
    await apply_catalog(desk, MARKET, merge=False)
    changed = await set_admin_state(desk, ObjectKind.SUPPLY, "ark-main/seedance", Admin.DISABLED, "incident 7")
    assert (changed.revision, changed.effective_spec["admin"], changed.note) == (2, "disabled", "incident 7")
    assert (await desk.view.current()).supplies["ark-main/seedance"].admin is Admin.DISABLED
    await apply_catalog(desk, MARKET, merge=False)
    larger = edited(lambda v: v["supplies"][0]["limits"].update(concurrency=8))
    plan = await apply_catalog(desk, larger, merge=False)
    assert plan.catalog.supplies["ark-main/seedance"].admin is Admin.DISABLED
    plan = await apply_catalog(desk, edited(lambda v: v["supplies"][0].update(admin="draining")), merge=False)
    assert plan.catalog.supplies["ark-main/seedance"].admin is Admin.DRAINING
    assert (await set_admin_state(desk, ObjectKind.SUPPLY, "ark-main/seedance", Admin.DRAINING)).revision == 4


async def test_an_operators_word_closes_no_model(desk: CatalogDesk):
    """CAT-3, CAT-5: draining is no change of a binding."""
    await apply_catalog(desk, MARKET, merge=False)
    await set_admin_state(desk, ObjectKind.CHANNEL, "ark-main", Admin.DRAINING)
    assert (await desk.view.current()).models["seedance-2.0-933"].published
    with pytest.raises(Fault) as missing:
        await set_admin_state(desk, ObjectKind.CHANNEL, "nobody", Admin.DRAINING)
    assert missing.value.code == "not_found"


async def test_a_diff_says_what_would_change_and_changes_nothing(desk: CatalogDesk):
    """CAT-1: the same plan, not written."""
    await apply_catalog(desk, MARKET, merge=False)
    changes = await diff_catalog(desk, edited(lambda v: model(v)["bindings"][1].update(priority=7)), merge=False)
    assert [(c.id, c.change, c.details) for c in changes] == [
        ("seedance-2.0-933", "changed", ("bindings[1].priority: (nothing) -> 7",))
    ]
    assert await desk.store.revision() == 1


async def test_a_tenant_is_shown_what_it_may_use_with_prices_and_losses(desk: CatalogDesk):
    """OAI-2, TIER-6, SEL-1: kind, profile, limits, price range in the catalogue's currency, disclosed degradations."""
    await apply_catalog(desk, MARKET, merge=False)
    assert [listed.model.id for listed in await list_models(desk, "studio-a")] == ["pictures"]
    pictures, video = await list_models(desk, "somebody-else")
    assert [(p.billing_mode, p.currency, str(p.low), str(p.high), p.per) for p in pictures.prices] == [
        ("per_image", "CNY", "0.2800", "0.2800", "image")
    ]
    assert [(p.billing_mode, str(p.low), str(p.high), p.per) for p in video.prices] == [
        ("per_request", "6.00", "6.00", "request"),
        ("per_second", "1.00", "2.50", "second"),
    ]
    assert [(loss.to_profile, loss.drops, loss.discloses) for loss in video.losses] == [
        ("900", ("reference_videos", "reference_audios"), "Reference videos and audios are ignored.")
    ]
    assert (video.declared_at, video.model.profile) == (NOW, "933")
    await apply_catalog(desk, edited(lambda v: [m.update(published=False) for m in v["models"]]), merge=False)
    assert await list_models(desk, "somebody-else") == []


def test_a_model_without_prices_has_no_range():
    """OAI-2: nothing is made up."""
    unbound = Model("m", 1, Kind.VIDEO, "p", bindings=(Binding("gone", Tier.EXACT),))
    assert price_ranges(Catalog(revision=1), unbound) == []


class CountingStore(MemoryCatalogStore):
    """Counts the looks at the newest revision; each lasts a turn of the loop."""

    looks = 0

    async def revision(self) -> int:
        self.looks += 1
        await asyncio.sleep(0)
        return await super().revision()


async def test_many_that_ask_at_once_look_once(clock: StillClock):
    """CAT-2: a claimed batch reads the catalogue together; the store is asked once a second, not once a Task."""
    store = CountingStore()
    view = CatalogView(store, clock)
    await asyncio.gather(*(view.current() for _ in range(32)))
    assert store.looks == 1
    await clock.sleep(1)
    await asyncio.gather(*(view.current() for _ in range(32)))
    assert store.looks == 2


async def test_a_change_made_elsewhere_is_read_within_a_second(desk: CatalogDesk, clock: StillClock):
    """CAT-2: `current` is at most a second old."""
    elsewhere = CatalogView(desk.store, clock)
    assert (await elsewhere.current()).revision == 0
    await apply_catalog(desk, MARKET, merge=False)
    assert (await desk.view.current()).revision == 1, "at once where it was made"
    await clock.sleep(1)
    assert (await elsewhere.current()).revision == 1


async def test_whoever_must_know_looks_at_once(desk: CatalogDesk, clock: StillClock):
    """CAT-3: `newest` sees what another process has changed a moment ago; the list of models is such a look."""
    elsewhere = CatalogView(desk.store, clock)
    assert (await elsewhere.current()).revision == 0
    await apply_catalog(desk, MARKET, merge=False)
    assert (await elsewhere.current()).revision == 0
    models = await list_models(replace(desk, view=elsewhere), "t")
    assert [item.model.id for item in models] == [item.model.id for item in await list_models(desk, "t")] != []
    assert (await elsewhere.newest()).revision == (await elsewhere.current()).revision == 1


async def test_a_moment_of_silence_keeps_nothing_out_of_use(clock: StillClock, dialects: Dialects):
    """CAT-3: a provider_adapter that is between two replicas is asked again; only lasting silence closes the gate."""
    dialects.stumbles = 3
    assert all(standings(await apply_catalog(new_desk(clock, dialects), MARKET, merge=False)).values())
    dialects.away = True
    assert not any(standings(await apply_catalog(new_desk(clock, dialects), MARKET, merge=False)).values())


async def test_a_change_is_answered_after_its_peers_were_told(desk: CatalogDesk):
    """CAT-1: whoever was answered may build on what peers know; a file that changes nothing tells nothing."""
    told = []

    async def tell() -> None:
        told.append((await desk.view.current()).revision)

    telling = replace(desk, tell=tell)
    await apply_catalog(telling, MARKET, merge=False)
    assert told == [1]
    await apply_catalog(telling, MARKET, merge=False)
    assert told == [1]
