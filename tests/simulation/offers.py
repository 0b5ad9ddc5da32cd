"""What is on offer in the simulated world: three accounts, four Supplies, small limits, short cooldowns."""

from libs.kernel.canonical import canonical_json

ACCOUNTS = ("alpha", "beta", "gamma")
MODEL = "clip"
KIND_LIMIT = 0
CHANNEL_SLOTS = {"alpha": 3, "beta": 3, "gamma": 2}
SUPPLY_SLOTS = {"alpha/clip": 2, "alpha/turbo": 2, "beta/clip": 2, "gamma/clip": 1}
SUPPLY_RPM = {"beta/clip": 12}
MAX_ATTEMPTS = 3
WINDOW_S = 400
UNCERTAIN_S = 150
RATES = {"alpha": "1.00", "beta": "1.20", "gamma": "0.90"}


def catalog_text() -> str:
    """The catalogue file (JSON is YAML)."""
    return canonical_json(
        {
            "version": 1,
            "currency": "CNY",
            "channels": [_channel(name) for name in ACCOUNTS],
            "supplies": [_supply(name, slots) for name, slots in SUPPLY_SLOTS.items()],
            "prices": [
                {"id": name, "version": 1, "currency": "CNY", "billing_mode": "per_second", "rate": rate}
                for name, rate in RATES.items()
            ],
            "policies": [
                {
                    "id": "stable",
                    "max_attempts": MAX_ATTEMPTS,
                    "new_attempt_window_s": WINDOW_S,
                    "uncertain_deadline_s": UNCERTAIN_S,
                }
            ],
            "models": [
                {
                    "id": MODEL,
                    "kind": "video",
                    "policy": "stable",
                    "published": True,
                    "bindings": [{"supply": name, "tier": "exact"} for name in SUPPLY_SLOTS],
                }
            ],
        }
    ).decode()


def _channel(name: str) -> dict[str, object]:
    return {
        "id": name,
        "adapter": "ark",
        "base_url": f"https://{name}.sim/api/v3",
        "secret": f"env:{name.upper()}_KEY",
        "limits": {"concurrency": CHANNEL_SLOTS[name]},
        "health": {"cooldown_s": 10, "account_cooldown_s": 15},
    }


def _supply(name: str, slots: int) -> dict[str, object]:
    account = name.partition("/")[0]
    return {
        "id": name,
        "channel": account,
        "upstream_model": name.replace("/", "-"),
        "kind": "video",
        "capabilities": {"duration_s": {"min": 1, "max": 15}},
        "limits": {"concurrency": slots, "rpm": SUPPLY_RPM.get(name, 0)},
        "prices": [account],
        "evidence": "waived",
        "evidence_reason": "the simulated world",
        "charges_on_failure": account == "gamma",
    }
