"""What records prove about an unanswered submission."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from services.provider_adapter.domain.outcomes import Listed, Verdict
from services.provider_adapter.domain.reconciliation import CLOCK_SKEW_S, Submission, complete, settled, verdict

SENT = 1000.0
SUBMISSION = Submission(SENT, submit_timeout_s=30.0)
LATE = SENT + 500.0
SETTLE = 10.0


def page(*times: float, found: str = "", total: int | None = None, unmarked: tuple[float, ...] = ()) -> Listed:
    """A page of records of these times."""
    return Listed(
        found=found,
        seen=len(times),
        total=total,
        oldest_s=min(times, default=None),
        newest_s=max(times, default=None),
        descending=list(times) == sorted(times, reverse=True),
        unmarked_s=unmarked,
    )


def of(*pages: Listed, read_s: float = LATE) -> Verdict:
    """The verdict over pages."""
    return verdict(pages, SUBMISSION, read_s, SETTLE).verdict


def test_our_token_proves_acceptance_at_any_time() -> None:
    """ATT-6: a record with our token is our job, however early, however incomplete the listing."""
    assert of(page(SENT, found="cgt-1", total=999), read_s=SENT) is Verdict.ACCEPTED


def test_absence_proves_only_when_everything_was_seen() -> None:
    """ATT-6: all records, or in falling order back beyond the submission; nothing else."""
    long_ago = SENT - CLOCK_SKEW_S - 1
    assert of(page(SENT, total=1)) is Verdict.NOT_ACCEPTED
    assert of(page(total=0)) is Verdict.NOT_ACCEPTED
    assert of(page(SENT, long_ago)) is Verdict.NOT_ACCEPTED
    assert of(page(SENT, SENT - 1)) is Verdict.UNKNOWN
    assert of(page(long_ago, SENT)) is Verdict.UNKNOWN
    assert of(page(SENT, SENT - 1), page(SENT + 5, long_ago)) is Verdict.UNKNOWN
    assert of(page(SENT, total=2)) is Verdict.UNKNOWN


def test_a_record_without_a_token_may_be_ours() -> None:
    """ATT-6: an unmarked record of that time leaves the question open; an old one does not."""
    assert of(page(SENT, total=1, unmarked=(SENT,))) is Verdict.UNKNOWN
    assert of(page(SENT, total=1, unmarked=(SENT - 500,))) is Verdict.NOT_ACCEPTED


def test_absence_proves_nothing_while_the_request_may_be_under_way() -> None:
    """ATT-6: a slow provider may take it until the submission timeout, whenever its sender died; and a while later."""
    for age, expected in ((0, False), (10, False), (16, False), (29.9, False), (30, False), (39.9, False), (40, True)):
        assert settled(SUBMISSION, SENT + age, SETTLE) is expected, age


def test_no_clock_makes_silence_longer_than_it_was() -> None:
    """ATT-6, VER-6: who has counted how long the records could have told is believed, whatever the clocks say."""
    for silent_s, read_s, expected in ((39.0, SENT + 3600, False), (40.0, SENT - 3600, True), (0.0, LATE, False)):
        assert settled(replace(SUBMISSION, silent_s=silent_s), read_s, SETTLE) is expected


def test_a_listing_goes_back_by_the_clock_of_the_provider() -> None:
    """ATT-6, VER-6: while our clock is an hour ahead the record of a submission is an hour older than we believe; one
    that is behind makes us read further back than is needed."""
    ahead = replace(SUBMISSION, ahead_s=3600.0)
    old = SENT - 3600
    assert complete([page(SENT, SENT - CLOCK_SKEW_S - 1)], SUBMISSION)
    assert not complete([page(SENT, SENT - CLOCK_SKEW_S - 1)], ahead)
    assert not complete([page(SENT, old)], ahead)
    assert complete([page(SENT, old - CLOCK_SKEW_S - 1)], ahead)
    assert complete([page(SENT, SENT - CLOCK_SKEW_S - 1)], replace(SUBMISSION, ahead_s=-3600.0))
    nameless = [page(old, total=1, unmarked=(old,))]
    assert verdict(nameless, SUBMISSION, LATE, SETTLE).verdict is Verdict.NOT_ACCEPTED
    assert verdict(nameless, ahead, LATE, SETTLE).verdict is Verdict.UNKNOWN


def test_a_listing_goes_back_to_a_submission_while_our_clock_is_made_up_for() -> None:
    """ATT-6, VER-6: sent while our clock was an hour ahead, and asked about ten minutes later, five by that clock,
    which is 55 minutes ahead by then: the record is ten minutes old by the provider's clock."""
    theirs = SENT - 3600
    asked = replace(SUBMISSION, ahead_s=3300.0, silent_s=500.0)
    pages = [page(theirs + 590, theirs + 100)]
    assert verdict(pages, asked, LATE, SETTLE).verdict is Verdict.NOT_ACCEPTED
    assert verdict(pages, replace(asked, slow_s=300.0), LATE, SETTLE).verdict is Verdict.UNKNOWN
    assert replace(asked, slow_s=300.0).since_s <= theirs - CLOCK_SKEW_S


@given(
    st.lists(st.lists(st.floats(0, 2000), max_size=4), min_size=1, max_size=4),
    st.none() | st.integers(0, 20),
    st.floats(SENT, SENT + 100),
)
def test_not_accepted_is_never_said_early_or_of_a_part(
    times: list[list[float]], total: int | None, read_s: float
) -> None:
    """ATT-6: whatever the pages, NOT_ACCEPTED needs the age and a complete listing."""
    pages = [page(*moments, total=total) for moments in times]
    if of(*pages, read_s=read_s) is Verdict.NOT_ACCEPTED:
        assert settled(SUBMISSION, read_s, SETTLE)
        seen = sum(item.seen for item in pages)
        falling = [moment for moments in times for moment in moments]
        all_seen = pages[-1].seen == 0 or (total is not None and seen >= total)
        assert all_seen or (falling == sorted(falling, reverse=True) and falling[-1] < SENT - CLOCK_SKEW_S)


def test_a_page_that_says_it_is_the_last_completes_the_listing() -> None:
    """ATT-6: a provider that pages by a mark says itself where its records end."""
    first = Listed(seen=100, oldest_s=SENT + 5, newest_s=SENT + 9)
    last = Listed(seen=1, ended=True)
    assert not complete([first], SUBMISSION)
    assert complete([first, last], SUBMISSION)


def test_a_record_that_looks_like_ours_proves_nothing_and_is_named() -> None:
    """ATT-6: two requests may be alike to the letter; only a token tells ours, so a person gets the id to compare."""
    page = Listed(seen=1, ended=True, unmarked_s=(SENT + 1,), likely=("p-1",))
    told = verdict([page], SUBMISSION, SENT + 1000, 10.0)
    assert told.verdict is Verdict.UNKNOWN
    assert "p-1" in told.evidence
