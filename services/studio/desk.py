"""The front desk: who may come in, how many at once, and what is written down when a job is taken on."""

from __future__ import annotations

import secrets
import shutil
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from services.studio.archive import Archive
from services.studio.domain.accounts import Account, Model
from services.studio.domain.refusals import Reason, Refusal
from services.studio.domain.script import Script
from services.studio.engines.shelf import Shelf, local_models
from services.studio.keys import Keys
from services.studio.media.clips import WORK_PREFIX
from services.studio.settings import StudioConfig

# Fields of an account that the lab may change while the studio runs, with their types.
CHANGEABLE: Mapping[str, Callable[[Any], Any]] = {
    "key": str,
    "revoked": bool,
    "concurrency": int,
    "running": int,
    "queue_s": float,
    "render_s": float,
    "speed": float,
    "first_token_s": float,
    "tokens_per_s": float,
    "real_person": str,
    "charges_on_failure": bool,
    "honours_keys": bool,
}


class Desk:
    """The state of all accounts. Lives on the event loop; what must survive a kill is in the archive."""

    def __init__(self, config: StudioConfig, data: Path, now: Callable[[], float] = time.time) -> None:
        data.mkdir(parents=True, exist_ok=True)
        self.config = config
        self.now = now
        self.started_at = now()
        self.inputs = data / "inputs"
        self.files = data / "files"
        self.files.mkdir(exist_ok=True)
        for left in data.glob(f"{WORK_PREFIX}*"):
            shutil.rmtree(left, ignore_errors=True)
        self.archive = Archive(data / "studio.sqlite3")
        self.script = Script()
        self.keys = Keys()
        self.shelf = local_models() if config.local_models else Shelf()
        self.accounts: dict[str, Account] = dict(config.accounts)
        self._active: Counter[tuple[str, str]] = Counter()
        self._most: Counter[tuple[str, str]] = Counter()
        self._calls: Counter[str] = Counter()
        self._most_calls: Counter[str] = Counter()

    def authenticate(self, account: Account, authorization: str, wanted: str = "bearer") -> None:
        """Raises Refusal unless the header carries the account's own, unrevoked key, after the `wanted` scheme."""
        scheme, _, key = authorization.partition(" ")
        good = secrets.compare_digest(key.strip().encode(), account.key.encode())
        if account.revoked or scheme.lower() != wanted or not good:
            raise Refusal(Reason.UNAUTHENTICATED, "")

    def take_slot(self, account: Account, model: Model) -> None:
        """Counts one job in, until `free_slot`. Raises Refusal when the account or the model has as many as it may."""
        in_account = sum(count for (owner, _), count in self._active.items() if owner == account.id)
        in_model = self._active[account.id, model.id]
        if in_account >= account.concurrency or (model.concurrency and in_model >= model.concurrency):
            raise Refusal(Reason.CONCURRENCY, "")
        self.hold_slot(account.id, model.id)

    def hold_slot(self, account_id: str, model_id: str) -> None:
        """Counts one job in, whatever the limit says: also one that was accepted before a restart."""
        self._active[account_id, model_id] += 1
        for model, now in ((model_id, self._active[account_id, model_id]), ("", self.active(account_id))):
            self._most[account_id, model] = max(self._most[account_id, model], now)

    def free_slot(self, account_id: str, model_id: str) -> None:
        """Counts one job out."""
        self._active[account_id, model_id] -= 1

    def active(self, account_id: str) -> int:
        """Jobs queued and running in an account."""
        return sum(count for (owner, _), count in self._active.items() if owner == account_id)

    def most_at_once(self, account_id: str) -> dict[str, int]:
        """The most jobs that were ever queued and running at one moment, by model; under "" those of the account."""
        return {model: count for (owner, model), count in self._most.items() if owner == account_id}

    def begin_call(self, account_id: str) -> None:
        """Counts one synchronous call in, until `end_call`."""
        self._calls[account_id] += 1
        self._most_calls[account_id] = max(self._most_calls[account_id], self._calls[account_id])

    def end_call(self, account_id: str) -> None:
        """Counts one synchronous call out."""
        self._calls[account_id] -= 1

    def most_calls(self, account_id: str) -> int:
        """The most synchronous calls that an account ever had under way at one moment."""
        return self._most_calls[account_id]

    def change(self, account_id: str, changes: Mapping[str, Any]) -> Account:
        """Changes fields of an account. Raises KeyError (no such account) or ValueError (unknown or bad field)."""
        account = self.accounts[account_id]
        unknown = sorted(set(changes) - set(CHANGEABLE))
        if unknown:
            raise ValueError(f"unknown: {', '.join(unknown)}; known: {', '.join(CHANGEABLE)}")
        try:
            values = {name: CHANGEABLE[name](value) for name, value in changes.items()}
        except TypeError as error:
            raise ValueError(str(error)) from error
        if values.get("speed", 1) <= 0:
            raise ValueError("speed is above 0")
        self.accounts[account_id] = replace(account, **values)
        return self.accounts[account_id]

    def reset(self) -> None:
        """Back to the configured accounts, an empty script and an empty ledger. No job may be under way."""
        self.accounts = dict(self.config.accounts)
        self.script.clear()
        self.keys.clear()
        self.archive.clear()
        self._most.clear()
        self._most_calls.clear()
        for folder in (self.files, self.inputs):
            for path in folder.glob("*"):
                path.unlink(missing_ok=True)
