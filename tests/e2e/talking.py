"""The accounts and the catalogue of the tests of synchronous calls: all but the reader speak OpenAI's dialect.

Each model has accounts of its own, so that what one test breaks no other test sees.
"""

from collections.abc import Mapping
from typing import Any

import yaml

from tests.support.stack import Setting

# model: (kind, upstream model, the accounts that it may go to in their order)
MODELS: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "talk": ("chat", "gpt-4o-mini", ("easy",)),
    "relay": ("chat", "gpt-4o-mini", ("shaky", "firm")),
    "full": ("chat", "gpt-4o-mini", ("busy",)),
    "closed": ("chat", "gpt-4o-mini", ("locked",)),
    "torn": ("chat", "gpt-4o-mini", ("tearing", "tearing-spare")),
    "vectors": ("embedding", "text-embedding-3-small", ("easy",)),
    "pictures": ("image", "gpt-image-1", ("easy",)),
    "voice": ("speech", "gpt-4o-mini-tts", ("easy",)),
    "reader": ("ocr", "own-font", ("reading",)),
}
ACCOUNTS = tuple(dict.fromkeys(name for _, _, names in MODELS.values() for name in names))
PRICES: Mapping[str, Mapping[str, Any]] = {
    "chat": {"billing_mode": "per_token", "input_per_million": "0.15", "output_per_million": "0.60"},
    "embedding": {"billing_mode": "per_token", "input_per_million": "0.02"},
    "image": {"billing_mode": "per_image", "rate": "0.04"},
    "speech": {"billing_mode": "per_character", "rate": "0.000015"},
    "ocr": {"billing_mode": "per_page", "rate": "0.01"},
}
CHARGED: Mapping[str, Mapping[str, Any]] = {
    "chat": {"unit": "million_tokens", "rate": "0.15", "rates": {"output": "0.60"}},
    "embedding": {"unit": "million_tokens", "rate": "0.02"},
    "image": {"unit": "image", "rate": "0.04"},
    "speech": {"unit": "thousand_characters", "rate": "0.015"},
    "ocr": {"unit": "page", "rate": "0.01"},
}


def setting() -> Setting:
    """The whole play."""
    return Setting(_accounts(), _catalog, {_variable(name): f"key-of-{name}" for name in ACCOUNTS}, {})


def _variable(name: str) -> str:
    return f"E2E_{name.upper().replace('-', '_')}_KEY"


def _dialect(account: str) -> str:
    return "local-ocr" if account == "reading" else "openai"


def _accounts() -> dict[str, Any]:
    models = {
        _dialect(names[0]): {
            upstream: {"id": upstream, "kind": kind, "price": {"currency": "USD", **CHARGED[kind]}}
            for kind, upstream, others in MODELS.values()
            if _dialect(others[0]) == _dialect(names[0])
        }
        for _, _, names in MODELS.values()
    }
    listed = [
        {
            "id": name,
            "dialect": _dialect(name),
            "key": f"key-of-{name}",
            "style": {"palette": ["#101820", "#408080", "#f0f0f0"], "motif": "petals"},
            "concurrency": 60,
            "running": 60,
            "render_s": 0.05,
            "first_token_s": 0.02,
            "tokens_per_s": 200,
            "models": list(models[_dialect(name)].values()),
        }
        for name in ACCOUNTS
    ]
    return {"defaults": {"openai": "easy"}, "render": {"workers": 1, "scale": 0.25, "fps": 8}, "accounts": listed}


def _catalog(studio: str) -> str:
    supplies = {f"{name}/{kind}": (name, kind, upstream) for kind, upstream, names in MODELS.values() for name in names}
    return yaml.safe_dump(
        {
            "version": 1,
            "currency": "USD",
            "channels": [_channel(studio, name) for name in ACCOUNTS],
            "supplies": [_supply(supply_id, *facts) for supply_id, facts in supplies.items()],
            "prices": [{"id": kind, "version": 1, "currency": "USD", **price} for kind, price in PRICES.items()],
            "policies": [
                {"id": "words", "order": "manual_priority", "sync": {"total_timeout_s": 30, "max_attempts": 3}}
            ],
            "models": [_model(name, *facts) for name, facts in MODELS.items()],
        },
        sort_keys=False,
    )


def _channel(studio: str, name: str) -> dict[str, Any]:
    return {
        "id": name,
        "adapter": _dialect(name),
        "base_url": f"{studio}/{name}/v1",
        "secret": f"env:{_variable(name)}",
        "limits": {"concurrency": 40},
    }


def _supply(supply_id: str, channel: str, kind: str, upstream: str) -> dict[str, Any]:
    return {
        "id": supply_id,
        "channel": channel,
        "upstream_model": upstream,
        "kind": kind,
        "limits": {"concurrency": 20},
        "prices": [kind],
        "evidence": "waived",
        "evidence_reason": "plays in the end-to-end tests",
    }


def _model(name: str, kind: str, upstream: str, accounts: tuple[str, ...]) -> dict[str, Any]:
    bindings = [
        {"supply": f"{account}/{kind}", "tier": "exact", "priority": 300 - 100 * place}
        for place, account in enumerate(accounts)
    ]
    return {
        "id": name, "kind": kind, "policy": "words", "enabled": True, "published": True, "bindings": bindings,
    }  # fmt: skip
