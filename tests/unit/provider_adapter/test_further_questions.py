"""Results that need a second question, or the channel's own key."""

from datetime import timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from msgspec import structs

from services.provider_adapter.domain.exchange import Broken, ExchangeBroken
from services.provider_adapter.domain.job import Job
from services.provider_adapter.domain.outcomes import JobState, Verdict
from tests.support.worlds import START
from tests.unit.provider_adapter.fakes import MP4, download
from tests.unit.provider_adapter.test_use_cases import (
    ENDPOINT,
    FILE,
    JOB,
    KEYED,
    PICTURE,
    PROMPT,
    SECRET,
    House,
    answer,
    refusal,
)

FAL = structs.replace(ENDPOINT, adapter="fal", base_url="https://queue.fal.example")
FAL_JOB = structs.replace(JOB, model="acme/storms/video")
OPENAI = structs.replace(ENDPOINT, adapter="openai", base_url="https://api.openai.example/v1")
DONE = answer(200, {"status": "COMPLETED", "request_id": "r-1"})
MADE = answer(200, {"video": {"url": FILE}})


async def test_a_result_at_an_address_of_its_own_is_asked_for_within_the_poll() -> None:
    """ERR-1a: a job is done when its result is here: two questions, one poll."""
    house = House(DONE, MADE)
    house.transport.files[FILE] = [download(MP4)]
    standing = await house.poll(FAL, FAL_JOB, "r-1")
    assert standing.state is JobState.SUCCEEDED
    assert [request.path for request, _ in house.transport.sent] == [
        "/acme/storms/requests/r-1/status",
        "/acme/storms/requests/r-1",
    ]
    assert house.transport.doors == [None]


@pytest.mark.parametrize("play", [answer(500, {}), answer(400, {"detail": "Request is still in progress"}),
                                  ExchangeBroken(Broken.RESET)])  # fmt: skip
async def test_a_second_question_that_fails_says_nothing_about_the_job(play: Any) -> None:
    """HLT-13: the state was told, the result was not: the poll failed, and the next one asks both again."""
    house = House(DONE, play, DONE, MADE)
    house.transport.files[FILE] = [download(MP4)]
    fault = await refusal(house.poll(FAL, FAL_JOB, "r-1"))
    assert (fault.code, fault.category) == ("poll_failed", "unknown")
    assert (await house.poll(FAL, FAL_JOB, "r-1")).state is JobState.SUCCEEDED


async def test_a_keyed_result_is_fetched_through_the_channels_door() -> None:
    """ERR-4: bytes behind the channel's own key are asked for under its base URL, with its header and no other."""
    house = House(answer(200, {"id": "v-1", "status": "completed", "seconds": "4"}))
    house.transport.files["/videos/v-1/content"] = [download(MP4)]
    standing = await house.poll(OPENAI, Job("attempt-1", "token-1", "video", "sora-2", {"prompt": "a storm"}), "v-1")
    assert standing.state is JobState.SUCCEEDED
    [door] = house.transport.doors
    assert door is not None
    assert (door.base_url, door.auth_header, door.auth_value) == (OPENAI.base_url, "Authorization", f"Bearer {SECRET}")
    assert SECRET not in repr(door)


async def test_records_that_are_paged_by_a_mark_are_read_to_their_end() -> None:
    """ATT-6: the mark of one page opens the next; the end is where the provider says so."""
    one = {"id": "p-2", "created_at": "2020-01-01T00:00:00Z", "input": {"prompt": "a calm"}}
    first = answer(200, {"next": "https://elsewhere.example/?cursor=c-2", "results": [one | {"created_at": "?"}]})
    house = House(first, answer(200, {"next": None, "results": [one]}))
    house.clock.advance(1000)
    told = await house.reconcile(structs.replace(ENDPOINT, adapter="replicate"), JOB, START)
    assert told.verdict is Verdict.NOT_ACCEPTED
    assert [request.query for request, _ in house.transport.sent] == [(), (("cursor", "c-2"),)]


async def test_a_record_just_like_ours_leaves_the_question_to_a_person() -> None:
    """ATT-6: nothing tells two equal requests apart where no token is echoed: UNKNOWN, the record named."""
    then = START.isoformat()
    alike = {"id": "p-7", "created_at": then, "input": JOB.input}
    house = House(answer(200, {"next": None, "results": [alike]}))
    house.clock.advance(1000)
    told = await house.reconcile(structs.replace(ENDPOINT, adapter="replicate"), JOB, START)
    assert told.verdict is Verdict.UNKNOWN
    assert "p-7" in told.evidence


async def test_records_are_compared_without_the_bytes_of_materials() -> None:
    """ATT-6: a question about a job needs none of its materials, which may be gone by then."""
    job = structs.replace(JOB, input={"prompt": "a storm", "first_frame": {"artifact": "0" * 64}})
    for adapter, empty in (
        ("replicate", {"next": None, "results": []}),
        ("dashscope", {"total": 0, "data": []}),
        ("openai", {"data": [], "has_more": False}),
    ):
        house = House(answer(200, empty))
        house.clock.advance(1000)
        told = await house.reconcile(structs.replace(ENDPOINT, adapter=adapter), job, START)
        assert told.verdict is Verdict.NOT_ACCEPTED, adapter


async def test_of_what_may_never_have_been_sent_only_records_are_read() -> None:
    """ATT-5, ATT-6: the same key again would be the submission; a dialect that lists its clips is asked by that way."""
    house = House(answer(200, {"data": [], "has_more": False}))
    house.clock.advance(1000)
    told = await house.reconcile(KEYED, PICTURE, START, START, True)
    assert (told.verdict, house.transport.sent) == (Verdict.UNKNOWN, [])
    clip = Job("attempt-1", "token-1", "video", "sora-2", {"prompt": PROMPT})
    assert (await house.reconcile(KEYED, clip, START, START, True)).verdict is Verdict.NOT_ACCEPTED
    ((request, _),) = house.transport.sent
    assert request.method == "GET"


async def test_absence_counts_from_the_latest_moment_at_which_it_may_have_been_sent() -> None:
    """ATT-6: records are read back to the earliest, and believed as late as after the latest."""
    none = answer(404, {"code": 1203, "message": "no such task"})
    house = House(none, none)
    house.clock.advance(1000)
    kling, latest = structs.replace(ENDPOINT, adapter="kling"), house.clock.now()
    assert (await house.reconcile(kling, JOB, START, latest, True)).verdict is Verdict.UNKNOWN
    house.clock.advance(1000)
    assert (await house.reconcile(kling, JOB, START, latest, True)).verdict is Verdict.NOT_ACCEPTED


async def test_how_far_the_clock_of_the_asker_is_ahead_is_read_from_the_answer() -> None:
    """ATT-6, VER-6: an hour after the answer's Date by the asker's clock: the listing must go back an hour further."""
    by_them = START - timedelta(hours=1)
    items = [{"id": "cgt-x", "created_at": by_them.timestamp() - age, "safety_identifier": "x"} for age in (0, 30)]
    plain = answer(200, {"items": items, "total": 99})
    told = structs.replace(plain, headers={**plain.headers, "date": format_datetime(by_them)})
    for said, asked_at, expected in (
        (plain, START, Verdict.NOT_ACCEPTED),
        (told, None, Verdict.NOT_ACCEPTED),
        (told, START, Verdict.UNKNOWN),
    ):
        house = House(said, reconcile_pages=1)
        found = await house.reconcile(ENDPOINT, JOB, START, None, False, 1000.0, asked_at)
        assert found.verdict is expected, found


async def test_how_long_ago_it_was_sent_may_be_twice_what_the_asker_believes() -> None:
    """ATT-6, VER-6: the asker's clock is ahead of the answer's Date and may have gone at half the pace since the
    submission, so the listing goes back as long again. Where nobody knows when it was sent, only as far as was said."""
    sent, asked_at = START, START + timedelta(minutes=5)
    oldest = sent - timedelta(minutes=2)
    items = [{"id": "cgt-x", "created_at": at.timestamp(), "safety_identifier": "x"} for at in (sent, oldest)]
    plain = answer(200, {"items": items, "total": 99})
    told = structs.replace(plain, headers={**plain.headers, "date": format_datetime(asked_at)})
    for records_only, expected in ((False, Verdict.UNKNOWN), (True, Verdict.NOT_ACCEPTED)):
        house = House(told, reconcile_pages=1)
        found = await house.reconcile(ENDPOINT, JOB, sent, sent, records_only, 1000.0, asked_at)
        assert found.verdict is expected, found
