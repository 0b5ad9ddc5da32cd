"""What a provider's records prove about a submission that was not answered (ATT-6).

Laws:
- our token in a record proves acceptance, and so does any acceptance of the same request under the same key;
- its absence proves the contrary only in a complete listing of all records since the submission, each of which carries
  a token, read at a time at which a submission under way would long have arrived. How long that is tells the caller,
  who has counted it: two clocks, or one before and after a step, may be an hour apart;
- a refusal of the same request under the same key proves the contrary only where it is about the request itself (the
  key would have brought the job back; what else refuses may stand before the keys, and a complaint about the key says
  that it is known), and as late as absence does;
- everything else proves nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from libs.faults.fault import Fault
from libs.faults.registry import Category
from services.provider_adapter.domain.adapter import LOOKUP
from services.provider_adapter.domain.outcomes import Listed, Reconciled, Verdict

CLOCK_SKEW_S = 60.0
MOST_LIKELY = 5  # ids of records that look like ours, told to whoever has to decide


@dataclass(frozen=True, slots=True)
class Submission:
    """When it was sent and how long it could be under way, in seconds (since the epoch, and of time).

    Where it is not known when: between `sent_s` and `latest_s`; 0 = at `sent_s`. `silent_s`: for how long its records
    could have told at least, as counted by the caller; None = the clocks say. `ahead_s`: how far the clock that wrote
    these times is ahead of the provider's by now. `slow_s`: how much longer ago it may have been sent than that clock
    says, which goes at half the pace while it is made up for what it was ahead.
    """

    sent_s: float
    submit_timeout_s: float
    latest_s: float = 0.0
    silent_s: float | None = None
    ahead_s: float = 0.0
    slow_s: float = 0.0

    @property
    def since_s(self) -> float:
        """No record of it is older than this, by the provider's clock."""
        return self.sent_s - max(self.ahead_s, 0.0) - self.slow_s - CLOCK_SKEW_S


def complete(pages: Sequence[Listed], submission: Submission) -> bool:
    """Whether the pages hold every record since the submission: all there are, or far enough back in order."""
    last = pages[-1]
    if last.seen == 0 or last.ended:
        return True
    if last.total is not None and sum(page.seen for page in pages) >= last.total:
        return True
    return _in_order(pages) and last.oldest_s is not None and last.oldest_s < submission.since_s


def _in_order(pages: Sequence[Listed]) -> bool:
    within = all(page.descending for page in pages)
    across = all(
        earlier.oldest_s is not None and later.newest_s is not None and earlier.oldest_s >= later.newest_s
        for earlier, later in pairwise(pages)
    )
    return within and across


def verdict(
    pages: Sequence[Listed], submission: Submission, read_s: float, settle_s: float, way: str = "list"
) -> Reconciled:
    """The verdict over pages whose reading began at `read_s`; `way` is `list` or `lookup`."""
    count = sum(page.seen for page in pages)
    where = f"list of tasks: {count} records on {len(pages)} page(s)"
    if way == LOOKUP:
        where = f"lookup by our token: {count} record(s)"
    found = next((page.found for page in pages if page.found), "")
    if found:
        return Reconciled(Verdict.ACCEPTED, found, f"{where}; one carries our token")
    if not pages or not complete(pages, submission):
        return Reconciled(Verdict.UNKNOWN, evidence=f"{where}; the listing is not complete")
    since = submission.since_s
    if any(time >= since for page in pages for time in page.unmarked_s):
        named = [pair for page in pages for pair in zip(page.unmarked_s, page.likely, strict=False)]
        likely = [name[:80] for time, name in named if time >= since][:MOST_LIKELY]
        like = f" (perhaps ours: {', '.join(likely)})" if likely else ""
        return Reconciled(Verdict.UNKNOWN, evidence=f"{where}; a record of that time carries no token{like}")
    if not settled(submission, read_s, settle_s):
        return Reconciled(Verdict.UNKNOWN, evidence=f"{where}; too early to tell")
    return Reconciled(Verdict.NOT_ACCEPTED, evidence=f"{where}; none carries our token")


def verdict_of_refusal(fault: Fault, submission: Submission, sent_s: float, settle_s: float) -> Reconciled:
    """The verdict over a refusal of the same request under the same key, sent again at `sent_s`."""
    where = f"same key again: {fault.metadata.get('reason', fault.code)}"
    about_the_key = "idempoten" in f"{fault.provider_code} {fault.provider_message}".lower()
    if about_the_key or fault.category not in (Category.CONTENT, Category.REQUEST):
        return Reconciled(Verdict.UNKNOWN, evidence=where)
    if not settled(submission, sent_s, settle_s):
        return Reconciled(Verdict.UNKNOWN, evidence=f"{where}; too early to tell")
    return Reconciled(Verdict.NOT_ACCEPTED, evidence=f"{where}; the key would have brought back an accepted job")


def settled(submission: Submission, read_s: float, settle_s: float) -> bool:
    """Whether a submission that the provider has taken must be in its records by now.

    Nobody can say when its connection broke: its sender may have died, or may live on though it lost its claim, and a
    provider may take its time over a living connection. So absence counts only from the submission timeout on.
    """
    by_clocks = read_s - max(submission.sent_s, submission.latest_s)
    silent_s = by_clocks if submission.silent_s is None else submission.silent_s
    return silent_s >= submission.submit_timeout_s + settle_s
