"""Reading a catalogue file: everything wrong is named by its path, at once."""

from decimal import Decimal

import pytest

from services.routing.domain.catalog import Order, Policy, Supply, Tier
from services.routing.domain.catalog_file import CatalogFile, ObjectKind, read_file
from services.routing.domain.catalog_links import doubt_faults, link_faults
from services.routing.domain.catalog_text import CatalogTextError, load
from tests.unit.routing.catalog_market import MARKET, edited

ADAPTERS = {"ark": frozenset({"list"}), "openai": frozenset({"none", "idempotency_key"})}


def faults_of(text: str) -> list[str]:
    """`path: reason` of every fault."""
    file = read_file(text)
    return [f"{path}: {reason}" for path, reason in (*file.faults, *link_faults(file, None, ADAPTERS))]


def of_kind(file: CatalogFile, kind: ObjectKind) -> dict[str, object]:
    """Typed values by id."""
    return {declared.id: declared.value for declared in file.of_kind(kind)}


def test_the_public_contracts_file_is_read_whole():
    """CAT-1: every section and field of the contract is understood, with its types."""
    file = read_file(MARKET)
    assert faults_of(MARKET) == []
    assert [len(file.of_kind(kind)) for kind in ObjectKind] == [2, 4, 4, 1, 1, 2, 1]
    supply = of_kind(file, ObjectKind.SUPPLY)["ark-main/seedance"]
    assert isinstance(supply, Supply)
    assert supply.capabilities["ratios"] == ["16:9", "9:16"], "16:9 is a text, not a number of seconds"
    policy = of_kind(file, ObjectKind.POLICY)["stable"]
    assert isinstance(policy, Policy)
    assert (policy.order, policy.absolute_cost_limit) == (Order.STABLE_FIRST, Decimal("50.00"))
    assert file.fx == {"USD": Decimal("7.00")}


def at(*path):
    """A value inside the market."""

    def find(value):
        for step in path:
            value = value[step]
        return value

    return find


def put(*path, to):
    """An edit that puts `to` at a path."""
    return lambda value: at(*path[:-1])(value).__setitem__(path[-1], to)


@pytest.mark.parametrize(
    "edit, fault",
    [
        (put("models", 0, "bindings", 0, "supply", to="x"), "models[0].bindings[0].supply: no supply 'x'"),
        (put("models", 0, "policy", to="y"), "models[0].policy: no policy 'y'"),
        (put("models", 0, "bindings", 2, "rule", to="z"), "models[0].bindings[2].rule: no degradation rule 'z'"),
        (put("supplies", 0, "channel", to="nowhere"), "supplies[0].channel: no channel 'nowhere'"),
        (put("supplies", 0, "prices", to=["gone"]), "supplies[0].prices[0]: no price 'gone'"),
        (put("tenants", 0, "models", to=["gone"]), "tenants[0].models[0]: no model 'gone'"),
        (put("prices", 3, "currency", to="EUR"), "prices[3].currency: no rate for EUR in fx"),
        (
            put("channels", 0, "reconcile_by", to="idempotency_key"),
            "channels[0].reconcile_by: source_not_configured: adapter 'ark' has no such way; there is list",
        ),
        (
            put("channels", 0, "adapter", to="carrier-pigeon"),
            "channels[0].adapter: source_not_configured: no adapter 'carrier-pigeon'; there are ark, openai",
        ),
    ],
)
def test_a_name_that_leads_nowhere_is_a_fault_with_its_path(edit, fault):
    """CAT-1, CAT-6: unknown channel, supply, price, policy, rule, model, currency and adapter."""
    assert fault in faults_of(edited(edit))


@pytest.mark.parametrize(
    "edit, fault",
    [
        (put("models", 0, "bindings", 0, "priority", to=1_000_001), "must be from 0 to 1000000, not 1000001"),
        (put("models", 0, "bindings", 0, "priority", to=-1), "must be from 0 to 1000000, not -1"),
        (put("models", 0, "bindings", 0, "priority", to=1.5), "must be a whole number, not a number"),
        (put("models", 0, "bindings", 0, "tier", to="best"), "must not be 'best'; one of exact, fallback, degraded"),
        (put("models", 0, "bindings", 0, "rule", to="r933-900"), "belongs to degraded bindings"),
        (put("models", 0, "bindings", 2, "rule", to=None), "is required for a degraded binding"),
        (put("models", 0, "bindings", 1, "supply", to="ark-main/seedance"), "is bound twice, first at bindings[0]"),
        (put("models", 1, "bindings", 0, "supply", to="ark-main/seedance"), "makes video, the model is of kind image"),
        (put("models", 0, "profile", to="900"), "is for profile '933', the model has '900'"),
        (put("models", 0, "limits", "duration_s", "max", to=2), "must not be below min (4)"),
        (put("models", 0, "limits", "duration_s", "lengths", to=[8, 5]), "must be a list of whole numbers of seconds"),
        (put("supplies", 0, "colour", to="red"), "supplies[0].colour: is not a known field; known are admin, "),
        (put("supplies", 0, "kind", to="film"), "must not be 'film'; one of video, image, chat"),
        (put("supplies", 0, "capabilities", "sizes", to=["1x1"]), "capabilities.sizes: is not a known field"),
        (put("supplies", 1, "evidence_reason", to=None), "is required beside evidence: waived"),
        (put("supplies", 0, "admin", to="off"), "must not be 'off'; one of enabled, draining, disabled"),
        (put("supplies", 0, "limits", "concurrency", to="5"), "must be a whole number, not a text"),
        (put("channels", 0, "id", to="a b"), "must begin with a letter or digit"),
        (put("channels", 1, "id", to="ark-main"), "'ark-main' is declared twice, first at channels[0]"),
        (put("channels", 0, "secret", to="sk-live-1234"), "must name where the secret is: env:NAME or file:PATH"),
        (put("channels", 0, "base_url", to="ftp://x"), "must be an http or https address"),
        (put("channels", 0, "base_url", to="https://me:word@x/v1"), "channels[0].base_url: must hold no user"),
        (
            put("degradation_rules", 0, "drop_inputs", to=["reference_video"]),
            "degradation_rules[0].drop_inputs[0]: no kind of request has a field 'reference_video'",
        ),
        (
            put("degradation_rules", 0, "clamp", to={"duration": {"max": 5}}),
            "degradation_rules[0].clamp.duration: no kind of request has a field 'duration'",
        ),
        (put("channels", 0, "timeouts", "submit_s", to=0), "must be above 0 and at most 86400, not 0"),
        (put("channels", 0, "health", "cooldown", to=5), "health.cooldown: is not a known field"),
        (put("channels", 0, "health", "failure_rate", to=1.5), "must be above 0 and at most 1, not 1.5"),
        (put("policies", 0, "absolute_cost_limit", to=1.5), 'must be exact: write "1.5", with the quotes'),
        (put("policies", 0, "absolute_cost_limit", to="-1"), "must be at least 0"),
        (put("policies", 0, "max_attempts", to=0), "must be from 1 to 10, not 0"),
        (put("policies", 0, "when_full", to="panic"), "must not be 'panic'"),
        (put("policies", 0, "sync", "selector", to="dice"), "policies[0].sync.selector: must not be 'dice'"),
        (put("prices", 0, "billing_mode", to="per_hour"), "must not be 'per_hour'; one of per_second"),
        (put("prices", 0, "rate", to=0.1), 'prices[0].rate: must be exact: write "0.1", with the quotes'),
        (put("prices", 1, "bands", 0, "to", to=3), "prices[1].bands[0].to: must not be below from (4)"),
        (put("prices", 1, "bands", to=[]), "a per_request rule needs rate, rates, table or bands"),
        (put("prices", 2, "input_per_million", to=None), "prices[2].input_per_million: is required"),
        (put("prices", 3, "bands", to=[]), "prices[3].bands: is not a known field"),
        (put("prices", 3, "currency", to="dollars"), "must be three capital letters"),
        (put("fx", "CNY", to="1"), "is the catalogue's own currency"),
        (put("degradation_rules", 0, "to_profile", to="933"), "must differ from from_profile"),
        (put("degradation_rules", 0, "script", to="x()"), "degradation_rules[0].script: is not a known field"),
        (put("tenants", 0, "quotas", "rpm", to=-1), "tenants[0].quotas.rpm: must be from 0"),
        (put("tenants", 0, "quotas", "spend", to={"period": "day"}), "tenants[0].quotas.spend.cost: is required"),
        (
            put("tenants", 0, "quotas", "spend", to={"cost": "5", "period": "year"}),
            "tenants[0].quotas.spend.period: must not be 'year'; one of day, week, month",
        ),
        (
            put("tenants", 0, "quotas", "spend", to={"cost": "5", "period": "day", "currency": "XAU"}),
            "tenants[0].quotas.spend.currency: no rate for XAU in fx",
        ),
        (put("version", to=2), "version: must be 1"),
        (put("modells", to=[]), "modells: is not a known field"),
        (put("models", to={}), "models: must be a list, not a mapping"),
        (put("models", 0, to="x"), "models[0]: must be a mapping, not a text"),
    ],
)
def test_a_value_that_cannot_be_is_a_fault_with_its_path(edit, fault):
    """CAT-1, CAT-4, TIER-3: types, ranges, unknown fields, floats for money, duplicates, misplaced rules."""
    assert any(fault in line for line in faults_of(edited(edit))), faults_of(edited(edit))


def test_all_faults_are_named_at_once():
    """CAT-1: every fault, not the first one."""
    text = edited(
        put("models", 0, "bindings", 0, "supply", to="x"),
        put("policies", 0, "min_samples", to=0),
        put("channels", 0, "poll_interval_s", to=-1),
    )
    assert len(faults_of(text)) == 3


def test_a_secret_that_was_pasted_is_not_repeated():
    """CAT-1, ERR-4: a fault about a secret never shows it."""
    assert "sk-live-1234" not in " ".join(faults_of(edited(put("channels", 0, "secret", to="sk-live-1234"))))


def test_rules_that_lead_back_are_refused():
    """CAT-1: 933 -> 900 -> 933 is no degradation."""
    back = {"id": "back", "from_profile": "900", "to_profile": "933", "set": {"seed": 1}}
    found = faults_of(edited(lambda value: value["degradation_rules"].append(back)))
    assert "degradation_rules[1].to_profile: rules lead from '933' back to '900'" in found


def test_whole_numbers_are_exact_amounts():
    """CAT-1: an amount may be a text or a whole number."""
    assert faults_of(edited(put("policies", 0, "absolute_cost_limit", to=50))) == []


def test_priority_is_0_unless_said():
    """CAT-4: the default of a binding's priority."""
    models = of_kind(read_file(MARKET), ObjectKind.MODEL)
    assert [(b.tier, b.priority) for b in models["seedance-2.0-933"].bindings][1] == (Tier.FALLBACK, 0)


@pytest.mark.parametrize(
    "text, reason",
    [
        ("version: 1\nversion: 2\n", "line 2, column 1: the key 'version' stands twice"),
        ("a: [1, 2\nb: 3", "line 2"),
        ("a: &x [*x]\n", "recursive"),
        ("a: !!python/object/apply:os.system ['true']\n", "line 1"),
        ("a: b\0", "NUL"),
        ("? [a, b]\n: c\n", "a key must be a plain text"),
        ("a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
            f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 10)}]\n" for i in range(7)
        ), "stands for more than"),
    ],
)  # fmt: skip
def test_text_that_is_no_catalogue_is_refused(text, reason):
    """CAT-1: duplicates, broken YAML, endless and enormous values, tags that construct."""
    with pytest.raises(CatalogTextError, match=reason):
        load(text)


def test_plain_words_are_not_flags_dates_or_clocks():
    """CAT-1: YAML 1.2 scalars: `yes`, `16:9` and dates are texts."""
    assert load("a: yes\nb: 16:9\nc: 2026-11-29\nd: true\ne: 1_000\nf: 1.5\ng: ~\n") == {
        "a": "yes",
        "b": "16:9",
        "c": "2026-11-29",
        "d": True,
        "e": "1_000",
        "f": 1.5,
        "g": None,
    }


def test_an_empty_text_is_a_fault_and_no_crash():
    """CAT-1: nothing is not a catalogue."""
    assert faults_of("")[0].startswith("the file: must be a mapping")


def test_a_doubt_is_given_the_time_that_absence_needs():
    """ATT-6: a policy under which no record could ever prove absence is a fault with the least that it needs; where
    nobody looks in records there is nothing to wait for."""

    def faults(seconds: str, adapters: dict[str, frozenset[str]] = ADAPTERS) -> list[tuple[str, str]]:
        text = MARKET.replace("uncertain_deadline_s: 1800", f"uncertain_deadline_s: {seconds}")
        return list(doubt_faults(read_file(text), None, adapters, 10.0))

    ((path, reason),) = faults("39")
    assert path.endswith("uncertain_deadline_s")
    assert reason.startswith("must be at least 40: timeouts.submit_s 30 of channel 'ark-")
    assert faults("40") == []
    assert faults("1", {"ark": frozenset({"none"}), "openai": frozenset({"none"})}) == []
