"""The providers' accounts and the catalogue of the end-to-end tests, drawn from one table.

Every theme has an account of its own, so that what one test breaks no other test sees: a channel per account, a supply
`ACCOUNT/clip` per channel. Jobs take a fraction of a second, clips are drawn small, polls come quickly.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import yaml

from tests.support.stack import Setting

UPSTREAM = "doubao-seedance-2-0-260128"
LOOKS = ("curtains", "pines", "clouds", "petals", "sparks")
SLOTS_AT_PROVIDER = 60
FEATURES = ["first_frame", "last_frame", "seed"]
FULL = {"reference_images": 9, "reference_videos": 3, "reference_audios": 3}
IMAGES_ONLY = {"reference_images": 9, "reference_videos": 0, "reference_audios": 0}


@dataclass(frozen=True, slots=True)
class Part:
    """One account with its channel and its supply: slots of both, price a second, how its breaker is set."""

    slots: int = 4
    channel_slots: int = 20
    rate: str = "1.00"
    inputs: Mapping[str, int] = field(default_factory=lambda: FULL)
    health: Mapping[str, Any] = field(default_factory=dict)


PARTS: Mapping[str, Part] = {
    "steady": Part(slots=12),
    "five": Part(slots=5),
    "eight": Part(slots=8),
    "three": Part(slots=3),
    "exact": Part(health={"cooldown_s": 4}),
    "lesser": Part(rate="0.50", inputs=IMAGES_ONLY),
    "prim": Part(),
    "prim-spare": Part(),
    "revoked": Part(health={"cooldown_s": 120}),
    "spare": Part(),
    "ladder": Part(slots=8, health={"cooldown_s": 2}),
    "lossy": Part(),
    "single": Part(slots=1),
    "narrow": Part(slots=6, channel_slots=2),
    "paced": Part(slots=8, health={"capacity_failures": 50, "degraded_failures": 49}),
    **{
        f"rung-{slots}": Part(slots=slots, health={"cooldown_s": 2, "consecutive_failures": 2})
        for slots in (1, 2, 3, 4, 8)
    },
}

MODELS: Mapping[str, Mapping[str, Any]] = {
    "steady": {"bindings": ["steady"]},
    "burst": {"bindings": ["five", "eight", "three"]},
    "whole": {"bindings": ["exact", ("lesser", {"tier": "degraded", "rule": "r933-900"})], "profile": "933"},
    "proper": {"bindings": ["prim", "prim-spare"]},
    "guarded": {"bindings": ["revoked", "spare"]},
    "ladder": {"bindings": ["ladder"]},
    "lossy": {"bindings": ["lossy"]},
    "single": {"bindings": ["single"]},
    "crowd": {"bindings": ["five", "three", "narrow", "single"]},
    "paced": {"bindings": ["paced"]},
    "paced-once": {"bindings": ["paced"], "policy": "once"},
    **{part: {"bindings": [part], "policy": "once"} for part in PARTS if part.startswith("rung-")},
}


def setting(submit_s: float = 30.0, **settings: str) -> Setting:
    """The whole play; `settings` are further variables of the product.

    Whoever kills in the middle of a submission waits for `submit_s` to pass before its absence proves anything (ATT-6).
    """
    secrets = {_variable(name): f"key-of-{name}" for name in PARTS}
    return Setting(_accounts(), partial(_catalog, submit_s=submit_s), secrets, settings)


def _variable(name: str) -> str:
    return f"E2E_{name.upper().replace('-', '_')}_KEY"


def _accounts() -> dict[str, Any]:
    listed = [_account(number, name, part) for number, (name, part) in enumerate(PARTS.items())]
    return {"defaults": {"ark": "steady"}, "render": {"workers": 2, "scale": 0.25, "fps": 8}, "accounts": listed}


def _account(number: int, name: str, part: Part) -> dict[str, Any]:
    price = {"currency": "CNY", "unit": "second", "rate": part.rate}
    return {
        "id": name,
        "dialect": "ark",
        "key": f"key-of-{name}",
        "style": {"palette": ["#101820", "#408080", "#f0f0f0"], "motif": LOOKS[number % len(LOOKS)]},
        "concurrency": SLOTS_AT_PROVIDER,
        "running": SLOTS_AT_PROVIDER,
        "queue_s": 0.05,
        "render_s": 0.2,
        "models": [{"id": UPSTREAM, "kind": "video", "price": price, **part.inputs}],
    }


def _catalog(studio: str, submit_s: float) -> str:
    return yaml.safe_dump(
        {
            "version": 1,
            "currency": "CNY",
            "channels": [_channel(studio, name, part, submit_s) for name, part in PARTS.items()],
            "supplies": [_supply(name, part) for name, part in PARTS.items()],
            "prices": [
                {"id": name, "version": 1, "currency": "CNY", "billing_mode": "per_second", "rate": part.rate}
                for name, part in PARTS.items()
            ],
            "policies": [
                {"id": "by-hand", "order": "manual_priority", "fallback_cost_multiplier_limit": "2.0"},
                {"id": "once", "order": "manual_priority", "max_attempts": 1},
            ],
            "degradation_rules": [_rule()],
            "models": [_model(name, facts) for name, facts in MODELS.items()],
        },
        sort_keys=False,
    )


def _channel(studio: str, name: str, part: Part, submit_s: float) -> dict[str, Any]:
    return {
        "id": name,
        "adapter": "ark",
        "base_url": f"{studio}/{name}/api/v3",
        "secret": f"env:{_variable(name)}",
        "limits": {"concurrency": part.channel_slots},
        "poll_interval_s": 0.2,
        "timeouts": {"submit_s": submit_s},
        "health": dict(part.health),
    }


def _supply(name: str, part: Part) -> dict[str, Any]:
    return {
        "id": f"{name}/clip",
        "channel": name,
        "upstream_model": UPSTREAM,
        "kind": "video",
        "capabilities": {
            "resolutions": ["480p", "720p"],
            "duration_s": {"min": 4, "max": 15},
            "inputs": dict(part.inputs),
            "features": FEATURES,
        },
        "limits": {"concurrency": part.slots},
        "prices": [name],
        "evidence": "waived",
        "evidence_reason": "plays in the end-to-end tests",
    }


def _rule() -> dict[str, Any]:
    return {
        "id": "r933-900",
        "from_profile": "933",
        "to_profile": "900",
        "drop_inputs": ["reference_videos", "reference_audios"],
        "verified": True,
        "published": True,
        "discloses": "Reference videos and audios are ignored.",
    }


def _model(name: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    given = [(item, {}) if isinstance(item, str) else item for item in facts["bindings"]]
    bindings = [
        {"supply": f"{part}/clip", "tier": "exact", "priority": 300 - 100 * place, **more}
        for place, (part, more) in enumerate(given)
    ]
    profile = {"profile": facts["profile"]} if "profile" in facts else {}
    limits = {"inputs": FULL, "duration_s": {"min": 4, "max": 15}}
    flags = {"enabled": True, "published": True}
    return {
        "id": name,
        "kind": "video",
        "policy": facts.get("policy", "by-hand"),
        **profile,
        "limits": limits,
        **flags,
        "bindings": bindings,
    }
