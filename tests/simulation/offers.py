"""What is on offer in a simulated world: up to three accounts, four Supplies, small limits, short cooldowns.

An operator puts new editions of the catalogue in force while the world goes on: each sells the same Supplies at another
price, under another name upstream. So whatever looks into the wrong revision calls or pays the wrong thing.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from libs.kernel.canonical import canonical_json

MODEL = "clip"
SECONDS = 5
"""The length of every clip that is ordered."""
MAX_ATTEMPTS = 3
CHANNEL_SLOTS = {"alpha": 3, "beta": 3, "gamma": 2}
SUPPLY_SLOTS = {"alpha/clip": 2, "alpha/turbo": 2, "beta/clip": 2, "gamma/clip": 1}
RATES = {"alpha": "1.00", "beta": "1.20", "gamma": "0.90"}


@dataclass(frozen=True, slots=True)
class Offers:
    """One world's. 0 requests a minute = no such gate. Times in seconds."""

    channel_slots: Mapping[str, int]
    supply_slots: Mapping[str, int]
    supply_rpm: Mapping[str, int]
    stretch: float = 1.0
    uncertain_s: float = 150.0
    """After this an uncertain submission is given up."""

    @property
    def accounts(self) -> tuple[str, ...]:
        """The accounts, which are the Channels."""
        return tuple(self.channel_slots)

    @property
    def window_s(self) -> float:
        """New Attempts begin within this time."""
        return 400.0 * self.stretch

    @property
    def submit_s(self) -> float:
        """The time limit of a submission."""
        return 30.0 * self.stretch

    def catalog_text(self, edition: int = 0) -> str:
        """The catalogue file (JSON is YAML)."""
        return canonical_json(
            {
                "version": 1,
                "currency": "CNY",
                "channels": [self._channel(name) for name in self.accounts],
                "supplies": [self._supply(name, slots, edition) for name, slots in self.supply_slots.items()],
                "prices": [_price(name, edition) for name in self.accounts],
                "policies": [
                    {
                        "id": "stable",
                        "max_attempts": MAX_ATTEMPTS,
                        "new_attempt_window_s": self.window_s,
                        "uncertain_deadline_s": self.uncertain_s,
                    }
                ],
                "models": [
                    {
                        "id": MODEL,
                        "kind": "video",
                        "policy": "stable",
                        "published": True,
                        "bindings": [{"supply": name, "tier": "exact"} for name in self.supply_slots],
                    }
                ],
            }
        ).decode()

    def _channel(self, name: str) -> dict[str, object]:
        return {
            "id": name,
            "adapter": "ark",
            "base_url": f"https://{name}.sim/api/v3",
            "secret": f"env:{name.upper()}_KEY",
            "limits": {"concurrency": self.channel_slots[name]},
            "timeouts": {
                "connect_s": 5.0 * self.stretch,
                "submit_s": self.submit_s,
                "poll_s": 10.0 * self.stretch,
            },
            "health": {"cooldown_s": 10.0 * self.stretch, "account_cooldown_s": 15.0 * self.stretch},
        }

    def _supply(self, name: str, slots: int, edition: int) -> dict[str, object]:
        account = name.partition("/")[0]
        return {
            "id": name,
            "channel": account,
            "upstream_model": upstream_model(name, edition),
            "kind": "video",
            "capabilities": {"duration_s": {"min": 1, "max": 15}, "inputs": {"reference_videos": 3}},
            "limits": {"concurrency": slots, "rpm": self.supply_rpm.get(name, 0)},
            "prices": [account],
            "evidence": "waived",
            "evidence_reason": "the simulated world",
            "charges_on_failure": account == "gamma",
        }


def _price(account: str, edition: int) -> dict[str, object]:
    rate = str(Decimal(RATES[account]) + Decimal(edition) / 100)
    return {"id": account, "version": 1 + edition, "currency": "CNY", "billing_mode": "per_second", "rate": rate}


def upstream_model(supply: str, edition: int) -> str:
    """What the provider calls it."""
    return supply.replace("/", "-") + (f"-v{edition + 1}" if edition else "")


def full_offers() -> Offers:
    """Everything there is, for worlds of full size."""
    return Offers(CHANNEL_SLOTS, SUPPLY_SLOTS, {"beta/clip": 12})


def drawn_offers(rng: random.Random, stretch: float) -> Offers:
    """Some of it: one account to three, fewer slots, and often a limit to the requests of a minute."""
    accounts = rng.sample(list(CHANNEL_SLOTS), rng.choice((1, 2, 3)))
    supplies = {
        name: rng.randint(1, slots) for name, slots in SUPPLY_SLOTS.items() if name.partition("/")[0] in accounts
    }
    rpm = {name: rng.choice((0, 0, 1, 2, 3)) for name in supplies}
    channels = {name: rng.randint(1, CHANNEL_SLOTS[name]) for name in CHANNEL_SLOTS if name in accounts}
    return Offers(channels, supplies, rpm, stretch, rng.choice((45.0, 150.0)) * stretch)
