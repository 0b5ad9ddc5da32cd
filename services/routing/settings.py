"""What an operator may set. Names end in units; every value has a default that a laptop and a cluster can live with."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path

from libs.blobs.opening import blobs_address
from libs.host.hints import hints_on

PREFIX = "ROUTING_"
LEAST_RETENTION_S = 3600.0
CAPACITY_TTL_MAX = "POINTSMAN_CAPACITY_TTL_MAX_S"
SHARED = {"capacity_ttl_max_s": CAPACITY_TTL_MAX, "reconcile_settle_s": "POINTSMAN_RECONCILE_SETTLE_S"}
"""Fields that are one setting with that of another context."""
DATA, RESTORED = "POINTSMAN_DATA", "POINTSMAN_RESTORED_BACKUP_AT"
NAMED = frozenset({"database_url", "hints", "blobs_address", "life_file", "restored_backup_at"})
"""Fields with variables of their own."""
SPARED = 0.5
"""Who has looked within this share of `waiting_look_s` is not called again: however many replicas come by, the head of
a line looks at most twice in that time."""
SCAN_JITTER, LOOK_JITTER = 1.1, 1.05


@dataclass(frozen=True, slots=True)
class Settings:
    """Routing's settings. ValueError, with the reason, for a combination that would break a promise."""

    database_url: str
    """A PostgreSQL address, or `memory:` for tests."""
    worker_lease_s: float = 15.0
    """A claim lapses after this; a dead worker's Task is taken over within this + a scan."""
    heartbeat_s: float = 4.0
    """How often claims in hand are prolonged."""
    scan_interval_s: float = 0.45
    """The durable queue is scanned about this often (ATT-9)."""
    dispatch_concurrency: int = 128
    """Tasks that one process decides at once; those that are being submitted are not counted."""
    submissions_per_channel: int = 128
    """Submissions to one Channel that one process has under way at once, about."""
    follow_concurrency: int = 64
    """Tasks that one process polls, reconciles or stops at once."""
    follow_per_s: float = 400.0
    """Of those, at most so many a second: with a hundred thousand jobs out, polls come later, not everything else."""
    claim_batch: int = 32
    waiting_look_s: float = 0.3
    """The heads of the lines of waiting Tasks look again after this. With those that are spared and a scan that is at
    most a second, at the worst moment too (CAP-10)."""
    health_look_s: float = 5.0
    """A Task that waits for a time of its own looks again after this at the latest."""
    rounds_per_step: int = 4
    """Reservations tried in one step before a refused Task waits (SEL-17)."""
    capacity_ttl_s: float = 60.0
    """Slots lapse after this unless renewed."""
    capacity_ttl_max_s: float = 120.0
    """The longest time to live that capacity grants: POINTSMAN_CAPACITY_TTL_MAX_S, one setting for both."""
    reconcile_settle_s: float = 10.0
    """Absence in a provider's records proves something so long after the submission timeout, as provider_adapter has
    it: POINTSMAN_RECONCILE_SETTLE_S, one setting for both."""
    renew_interval_s: float = 20.0
    health_poll_s: float = 0.5
    report_interval_s: float = 2.0
    poll_give_up_s: float = 1800.0
    """A job whose polls fail for so long without a break is given up; its cost is booked as quoted."""
    drift_cost_share: float = 0.05
    """Money that differs by more than this share is told as `cost_drift`."""
    drift_length_s: float = 1.0
    """Lengths that differ by more than this and 5 % are."""
    drift_pixel_share: float = 0.7
    """Files with fewer than this share of the pixels asked for are; 0 = their pixels are not compared."""
    check_interval_s: float = 15.0
    """How often the running checks look for what stands where it should not."""
    peer_timeout_s: float = 10.0
    """Time limit of every call to a peer but submissions and polls."""
    delivery_s: float = 120.0
    """Time beyond the provider's own answer in which media are fetched and stored."""
    call_retention_s: float = 7 * 86_400.0
    """How long synchronous calls stay on record after their end."""
    settle_window_s: float = 0.02
    """What follows ended calls (slots, outcomes, records) waits so long for more of its sort; 0 = not at all."""
    look_fresh_s: float = 0.05
    """A look at health and capacity serves the decisions of calls for so long, unless it would turn one away."""
    hold_every_call: int = 0
    """1: no call shares its Hold with others: an entry of the ledger for each, at the price that decision 31 tells."""
    orphan_interval_s: float = 15.0
    """How often calls whose process died are looked for."""
    pool_size: int = 8
    """Database connections kept."""
    drain_s: float = 10.0
    """How long a stopping process lets the steps in hand finish."""
    blobs_address: str = "./.pointsman/blobs"
    """A directory or an `s3://` address: where media are (POINTSMAN_BLOBS, `blobs` under POINTSMAN_DATA)."""
    life_file: str = ""
    """Where the mark of the database's life is kept: `life.json` under POINTSMAN_DATA; empty = nowhere."""
    restored_backup_at: datetime | None = None
    """The database was put back to a backup of that moment (POINTSMAN_RESTORED_BACKUP_AT)."""
    hints: bool = True
    """Whether anybody is woken before their next scan (POINTSMAN_HINTS)."""

    def __post_init__(self) -> None:
        rules = (
            (self.heartbeat_s * 3 <= self.worker_lease_s, "heartbeat_s must fit three times into worker_lease_s"),
            (self.scan_interval_s <= 1, "scan_interval_s must be at most 1 (ATT-9)"),
            (
                self.waiting_look_s * (SPARED + LOOK_JITTER) + self.scan_interval_s * SCAN_JITTER <= 1,
                "1.55 times waiting_look_s and 1.1 times scan_interval_s must be at most 1 together (CAP-10)",
            ),
            (self.health_poll_s <= 0.5, "health_poll_s must be at most 0.5"),
            (
                self.renew_interval_s * 2 <= self.capacity_ttl_s,
                "renew_interval_s must fit twice into capacity_ttl_s, or slots lapse under running work (CAP-3)",
            ),
            (
                0 <= self.settle_window_s <= 1 and 0 <= self.look_fresh_s <= 1,
                "settle_window_s and look_fresh_s must be from 0 to 1: slots and looks would be of yesterday",
            ),
            (
                self.call_retention_s >= max(LEAST_RETENTION_S, 2 * self.capacity_ttl_max_s),
                f"call_retention_s must be twice {CAPACITY_TTL_MAX} and {LEAST_RETENTION_S:g} s at least, or calls are "
                "forgotten while they run, or before what a dead process held for them is settled",
            ),
            (
                self.capacity_ttl_s <= self.capacity_ttl_max_s,
                f"capacity_ttl_s must be at most {CAPACITY_TTL_MAX}, or every reservation would be refused (CAP-3)",
            ),
            (
                min(
                    self.claim_batch,
                    self.follow_per_s,
                    self.dispatch_concurrency,
                    self.submissions_per_channel,
                    self.follow_concurrency,
                )
                >= 1,
                "counts are above 0",
            ),
            (
                min(self.drift_cost_share, self.drift_length_s, self.drift_pixel_share) >= 0,
                "tolerances of drift are not below 0",
            ),
        )
        for holds, reason in rules:
            if not holds:
                raise ValueError(f"routing settings: {reason}")

    @staticmethod
    def from_env(env: Mapping[str, str]) -> "Settings":
        """POINTSMAN_DATABASE_URL, POINTSMAN_CAPACITY_TTL_MAX_S, POINTSMAN_RECONCILE_SETTLE_S, POINTSMAN_HINTS, and
        ROUTING_<FIELD> for every other.

        ValueError names a wrong one.
        """
        given: dict[str, float | int] = {}
        for item in fields(Settings):
            name = SHARED.get(item.name, PREFIX + item.name.upper())
            text = env.get(name, "").strip()
            if item.name in NAMED or not text:
                continue
            try:
                given[item.name] = int(text) if item.type == "int" or item.type is int else float(text)
            except ValueError as error:
                raise ValueError(f"{name}: {text!r} is no number") from error
        return Settings(
            database_url=env["POINTSMAN_DATABASE_URL"],
            hints=hints_on(env),
            blobs_address=blobs_address(env),
            life_file=str(Path(env[DATA]) / "life.json") if env.get(DATA) else "",
            restored_backup_at=_moment(env.get(RESTORED, "").strip()),
            **given,  # type: ignore[arg-type]  # by field type
        )


def _moment(text: str) -> datetime | None:
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise ValueError(f"{RESTORED}: {text!r} is no time with a zone; write it like 2026-11-30T03:00:00Z")
    return moment
