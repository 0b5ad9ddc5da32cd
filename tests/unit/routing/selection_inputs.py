"""Builders for the frozen inputs of a selection: a small market that a test changes in one place."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from libs.kernel.money import Money
from services.routing.domain.catalog import (
    Binding,
    Channel,
    DegradationRule,
    Kind,
    Model,
    Order,
    Policy,
    Price,
    Supply,
    Tier,
)
from services.routing.domain.decision import CapacityView, Decision, Fate, HealthView, Inputs, QuoteView
from services.routing.domain.request import Request

NOW = datetime(2026, 11, 29, 12, 0, 0, tzinfo=UTC)
FULL_SHAPE = {"inputs": {"reference_images": 9, "reference_videos": 3, "reference_audios": 3}}
IMAGES_ONLY = {"inputs": {"reference_images": 9}}
RULE = DegradationRule(
    id="r933-900",
    revision=1,
    from_profile="933",
    to_profile="900",
    drop_inputs=("reference_videos", "reference_audios"),
    verified=True,
    published=True,
    discloses="Reference videos and audios are ignored.",
)


def materials(count: int, name: str = "m") -> list[dict[str, str]]:
    """`count` materials that differ."""
    return [{"url": f"https://materials.example/{name}{number}.bin"} for number in range(count)]


FULL_INPUT: Mapping[str, Any] = {
    "prompt": "a lighthouse in fog",
    "duration_s": 5,
    "reference_images": materials(9, "i"),
    "reference_videos": materials(3, "v"),
    "reference_audios": materials(3, "a"),
}


def offer(
    supply: str,
    tier: str = "exact",
    price: str | None = "5.00",
    *,
    priority: int = 0,
    health: HealthView | None = None,
    capacity: CapacityView | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """One bound Supply with its quote and its views; its id is `channel/name`."""
    return {
        "supply": Supply(
            **(
                {
                    "id": supply,
                    "revision": 1,
                    "channel": supply.split("/")[0],
                    "upstream_model": "m",
                    "kind": Kind.VIDEO,
                    "capabilities": IMAGES_ONLY if tier == "degraded" else FULL_SHAPE,
                    "prices": ("per-second",),
                }
                | fields
            )
        ),
        "binding": Binding(supply, Tier(tier), priority, RULE.id if tier == "degraded" else ""),
        "quote": QuoteView(unpriced_reason="no rule") if price is None else QuoteView(amount=Decimal(price)),
        "health": health,
        "capacity": capacity,
    }


def market(*offers: dict[str, Any], given: Mapping[str, Any] | None = None, **changes: Any) -> Inputs:
    """Inputs over these offers. `changes` are fields of Inputs, Policy (`policy_…`), Model (`model_…`) or Request
    (`request_…`)."""
    parts: dict[str, dict[str, Any]] = {"policy": {}, "model": {}, "request": {}, "": {}}
    for name, value in changes.items():
        part, _, field = name.partition("_")
        known = part in parts and field
        parts[part if known else ""][field if known else name] = value
    if "order" in parts["policy"]:
        parts["policy"]["order"] = Order(parts["policy"]["order"])
    supplies = {o["supply"].id: o["supply"] for o in offers}
    channels = {s.channel: Channel(s.channel, 1, "ark", "http://127.0.0.1:9", "env:KEY") for s in supplies.values()}
    model = Model(
        **(
            {
                "id": "seedance-2.0-933",
                "revision": 1,
                "kind": Kind.VIDEO,
                "policy": "stable",
                "profile": "933",
                "enabled": True,
                "published": True,
                "bindings": tuple(o["binding"] for o in offers),
            }
            | parts["model"]
        )
    )
    asked = {"prompt": "a lighthouse in fog", "duration_s": 5} if given is None else given
    return replace(
        Inputs(
            request=Request(**({"tenant": "default", "model": model.id, "input": asked} | parts["request"])),
            model=model,
            policy=Policy(**({"id": "stable", "revision": 3} | parts["policy"])),
            currency="CNY",
            supplies=supplies,
            channels=channels,
            rules={RULE.id: RULE},
            supply_health={o["supply"].id: o["health"] for o in offers if o["health"]},
            channel_health={},
            supply_capacity={o["supply"].id: o["capacity"] for o in offers if o["capacity"]},
            channel_capacity={},
            global_capacity=CapacityView(),
            quotes={o["supply"].id: o["quote"] for o in offers},
            spent=Money("CNY", Decimal(0)),
            now=NOW,
            prices={"per-second": Price("per-second", 1, 1, "CNY", "per_second")},
        ),
        **parts[""],
    )


def busy(used: int, of: int) -> CapacityView:
    """A Supply that uses `used` of `of` slots."""
    return CapacityView(configured=of, in_use=used, in_use_current_epoch=used)


def rated(rate: float, samples: int = 100, state: str = "healthy") -> HealthView:
    """A Supply with statistics."""
    return HealthView(state=state, success_rate=rate, samples=samples)


OPEN = HealthView(state="circuit_open", epoch=1, revision=2, limit=0, cooldown_until=NOW.replace(minute=1))
FULL = busy(5, 5)


def fate_of(decision: Decision, supply: str) -> Fate:
    """The one fate of a Supply."""
    (fate,) = [fate for fate in decision.fates if fate.supply == supply]
    return fate


def fates(decision: Decision) -> dict[str, tuple[str, str]]:
    """(step, reason) of every dropped Supply."""
    return {fate.supply: (fate.step, fate.reason) for fate in decision.fates if fate.fate == "dropped"}


def ranking(decision: Decision) -> list[str]:
    """Supplies that were chosen or ranked, best first."""
    return [fate.supply for fate in sorted(decision.fates, key=lambda fate: fate.rank) if fate.rank]
