"""What is played: three lives of a task and a production, the providers' accounts and the catalogue that they need.

| scene | what happens without a crash |
|---|---|
| delivered | submitted, accepted, polled, its result fetched, kept and paid |
| switched | the first supply answers 500; the second takes the job, its answer is lost, its records tell |
| cancelled | accepted and queued at the provider, then cancelled there |
| produced | a gate, two shots of a map under steering, a check and a release, all paid from one budget |
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

UPSTREAM = "doubao-seedance-2-0-260128"
ACCOUNTS: Mapping[str, Mapping[str, Any]] = {"plain": {}, "first": {}, "second": {}, "queued": {"running": 0}}
SUBMIT_S, SETTLE_S = 1.5, 0.5
TTL_S = 3.0
SETTINGS = {
    "ROUTING_WORKER_LEASE_S": "4.5",
    "ROUTING_HEARTBEAT_S": "1.5",
    "ROUTING_CAPACITY_TTL_S": str(TTL_S),
    "ROUTING_RENEW_INTERVAL_S": "1",
    "POINTSMAN_RECONCILE_SETTLE_S": str(SETTLE_S),
    "POINTSMAN_ALLOW_PRIVATE_URLS": "1",
    "ROUTING_DRIFT_PIXEL_SHARE": "0",  # clips are drawn small, whatever was asked
    "POINTSMAN_ADMIN": "off",
}


@dataclass(frozen=True, slots=True)
class Scene:
    """`ends`: how the Run may end whatever was killed, as (status, code of the error or "")."""

    name: str
    ends: frozenset[tuple[str, str]]
    loses_answer: bool = False
    cancels: bool = False
    produces: bool = False


SCENES = {
    scene.name: scene
    for scene in (
        Scene("delivered", frozenset({("succeeded", "")})),
        # A crash may use up the second Attempt before it was sent.
        Scene("switched", frozenset({("succeeded", ""), ("failed", "provider_error")}), loses_answer=True),
        Scene("cancelled", frozenset({("cancelled", "")}), cancels=True),
        Scene("produced", frozenset({("succeeded", "")}), produces=True),
    )
}
MODELS = {
    "delivered": ("plain",),
    "switched": ("first", "second"),
    "cancelled": ("queued",),
    "produced": ("plain",),
}


def accounts() -> str:
    """The studio's --config."""
    look = {"palette": ["#101820", "#408080", "#f0f0f0"], "motif": "clouds"}
    price = {"currency": "CNY", "unit": "second", "rate": "1.00"}
    listed = [
        {
            "id": name,
            "dialect": "ark",
            "key": f"key-of-{name}",
            "style": look,
            "concurrency": 60,
            "running": 60,
            "queue_s": 0.0,
            "render_s": 0.1,
            "models": [{"id": UPSTREAM, "kind": "video", "price": price, "reference_images": 9}],
            **more,
        }
        for name, more in ACCOUNTS.items()
    ]
    return yaml.safe_dump({"render": {"workers": 1, "scale": 0.2, "fps": 4}, "accounts": listed})


def secrets() -> dict[str, str]:
    """The variables that the catalogue names."""
    return {f"SWEEP_{name.upper()}_KEY": f"key-of-{name}" for name in ACCOUNTS}


def catalog(studio: str) -> str:
    """A channel and a supply for each account, a model for each scene."""
    flags = {"enabled": True, "published": True}
    return yaml.safe_dump(
        {
            "version": 1,
            "currency": "CNY",
            "channels": [_channel(studio, name) for name in ACCOUNTS],
            "supplies": [_supply(name) for name in ACCOUNTS],
            "prices": [{"id": "second", "version": 1, "currency": "CNY", "billing_mode": "per_second", "rate": "1.00"}],
            "policies": [{"id": "by-hand", "order": "manual_priority", "max_attempts": 2}],
            "models": [
                {"id": name, "kind": "video", "policy": "by-hand", **flags, "bindings": _bindings(names)}
                for name, names in MODELS.items()
            ],
        },
        sort_keys=False,
    )


def _channel(studio: str, name: str) -> dict[str, Any]:
    return {
        "id": name,
        "adapter": "ark",
        "base_url": f"{studio}/{name}/api/v3",
        "secret": f"env:SWEEP_{name.upper()}_KEY",
        "poll_interval_s": 0.8,
        "timeouts": {"submit_s": SUBMIT_S, "poll_s": 5},
    }


def _supply(name: str) -> dict[str, Any]:
    return {
        "id": f"{name}/clip",
        "channel": name,
        "upstream_model": UPSTREAM,
        "kind": "video",
        "capabilities": {"duration_s": {"min": 4, "max": 15}},
        "limits": {"concurrency": 2},
        "prices": ["second"],
        "evidence": "waived",
        "evidence_reason": "plays in the crash sweep",
    }


def _bindings(names: tuple[str, ...]) -> list[dict[str, Any]]:
    return [
        {"supply": f"{name}/clip", "tier": "exact", "priority": 300 - 100 * number} for number, name in enumerate(names)
    ]
