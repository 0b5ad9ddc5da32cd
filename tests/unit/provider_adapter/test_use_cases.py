"""The use-cases over fakes of the ports: what is kept, what is said, and what is never said."""

import asyncio
import base64
import json
import logging
from typing import Any

import pytest
from msgspec import structs

from libs.faults.fault import Fault
from libs.kernel.deadlines import deadline_at
from services.provider_adapter.app.conversation import Conversation
from services.provider_adapter.app.materials import Materials
from services.provider_adapter.app.media import MediaWorks
from services.provider_adapter.app.poll import PollJob
from services.provider_adapter.app.reconcile import ReconcileJob
from services.provider_adapter.app.submit import SubmitJob
from services.provider_adapter.domain.exchange import Broken, ExchangeBroken, HttpResponse
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.media import digest
from services.provider_adapter.domain.outcomes import JobState, Verdict
from services.provider_adapter.settings import Settings
from services.provider_adapter.store.secrets import ReferencedSecrets
from tests.support.worlds import START, steered_world
from tests.unit.provider_adapter.fakes import MP4, MemoryMedia, PlayedIntake, PlayedTransport, download
from tests.unit.provider_adapter.test_measures import FILM, FILMS

SECRET = "ark-0123456789abcdef"
PROMPT = "a very private storm over the harbour of a small town"
ENDPOINT = Endpoint("ark-main", "ark", "https://ark.example/api/v3", "env:ARK")
JOB = Job("attempt-1", "token-1", "video", "seedance", {"prompt": PROMPT})
FILE = "https://media.example/v.mp4?signature=s3cr3tsignature"


def answer(status: int, document: Any) -> HttpResponse:
    """A JSON answer."""
    return HttpResponse(status, {"content-type": "application/json"}, json.dumps(document).encode())


DONE = answer(200, {"id": "cgt-1", "status": "succeeded", "content": {"video_url": FILE}})


class House:
    """The use-cases, assembled over fakes."""

    def __init__(self, *plays: Any, **settings: Any) -> None:
        self.world, self.clock = steered_world()
        self.transport = PlayedTransport(list(plays))
        self.store = MemoryMedia()
        given = Settings("memory", media_backoff_s=0.0, **settings)
        self.media = MediaWorks(self.transport, self.store, self.world, given)
        talk = Conversation(self.transport, ReferencedSecrets({"ARK": SECRET}), self.clock, given.margin_s)
        self.intake = PlayedIntake(self.store)
        materials = Materials(self.store, self.intake, given.links, self.clock, given.material_bytes)
        self.submit = SubmitJob(talk, materials, self.media)
        self.poll = PollJob(talk, self.media)
        self.reconcile = ReconcileJob(talk, self.submit, self.clock, given)

    async def lived(self, call: Any) -> Any:
        """The end of a call that pauses: time is moved on while it waits."""
        task = asyncio.ensure_future(call)
        while not task.done():
            self.clock.advance(1.0)
            await asyncio.sleep(0)
        return await task


async def refusal(call: Any) -> Fault:
    """The fault in which a call ends."""
    with pytest.raises(Fault) as caught:
        await call
    return caught.value


async def test_a_film_goes_to_nobody_who_would_leave_its_parts_out() -> None:
    """SEL-5: a dialect without words for clips refuses them before anything is read or sent."""
    house = House(answer(200, {}))
    film = structs.replace(JOB, input={"prompt": PROMPT, "clips": [{"url": "https://media.example/a.mp4"}]})
    fault = await refusal(house.submit(structs.replace(ENDPOINT, adapter="kling"), film))
    assert [error.pointer for error in fault.errors] == ["/input/clips"]
    assert house.transport.sent == house.intake.taken == []


async def test_a_result_is_fetched_and_kept() -> None:
    """ERR-1a: a finished job's bytes are in the store before the poll says so."""
    house = House(DONE)
    house.transport.files[FILE] = [download(MP4)]
    standing = await house.poll(ENDPOINT, JOB, "cgt-1")
    assert standing.state is JobState.SUCCEEDED
    assert standing.result is not None
    [artifact] = standing.result.artifacts
    assert house.store.kept[artifact.sha256] == (MP4, "video/mp4")


async def test_a_result_is_measured_as_it_comes() -> None:
    """OPS-6: pixels and seconds of the file go with the result."""
    house = House(DONE)
    house.transport.files[FILE] = [download(FILMS["index last"][0])]
    standing = await house.poll(ENDPOINT, JOB, "cgt-1")
    assert standing.result is not None
    assert [artifact.measures for artifact in standing.result.artifacts] == [FILM]


async def test_fetching_is_tried_again_and_then_left_to_the_next_poll() -> None:
    """HLT-13: a GET is safe to repeat; a result that does not come fails the poll, not the job."""
    house = House(DONE, DONE)
    broken = ExchangeBroken(Broken.INCOMPLETE_BODY, 200)
    house.transport.files[FILE] = [broken, broken, broken, download(MP4, status=503), download(MP4)]
    fault = await refusal(house.lived(house.poll(ENDPOINT, JOB, "cgt-1")))
    assert (fault.code, fault.category) == ("poll_failed", "unknown")
    assert len(house.transport.fetched) == 3
    assert (await house.lived(house.poll(ENDPOINT, JOB, "cgt-1"))).state is JobState.SUCCEEDED


@pytest.mark.parametrize(
    "file",
    [
        download(b""),
        download(b"<html>sign in</html>", "text/html"),
        download(b"\x89PNG\r\n\x1a\n" + b"p" * 80, "image/png"),
    ],
    ids=["empty", "page", "picture"],
)
async def test_a_success_without_media_is_the_supplys_failure(file: Any) -> None:
    """ERR-1: a 200 may be a failure: what is empty or of another family is no clip."""
    house = House(DONE)
    house.transport.files[FILE] = [file]
    standing = await house.poll(ENDPOINT, JOB, "cgt-1")
    assert standing.state is JobState.FAILED
    assert standing.failure is not None
    assert (standing.failure.code, standing.failure.scope) == ("malformed_reply", "supply")
    assert house.store.kept == {}


async def test_a_short_file_is_not_kept_as_a_result() -> None:
    """ERR-1a: fewer bytes than promised are no result."""
    house = House(DONE, media_tries=1)
    house.transport.files[FILE] = [download(MP4, length=len(MP4) + 5)]
    assert (await refusal(house.poll(ENDPOINT, JOB, "cgt-1"))).code == "poll_failed"


async def test_a_fetch_goes_on_when_its_poll_is_given_up() -> None:
    """ERR-1a: a result that takes longer than a poll is fetched once, and found by the next poll."""
    house = House(DONE, DONE)
    gate, begun = asyncio.Event(), asyncio.Event()

    async def slow() -> Any:
        begun.set()
        await gate.wait()
        for chunk in (MP4,):
            yield chunk

    made = download(MP4)()
    house.transport.files[FILE] = [type(made)(200, "video/mp4", len(MP4), slow())]
    first = asyncio.ensure_future(house.poll(ENDPOINT, JOB, "cgt-1"))
    await begun.wait()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    gate.set()
    assert (await house.poll(ENDPOINT, JOB, "cgt-1")).state is JobState.SUCCEEDED
    assert len(house.transport.fetched) == 1
    await house.media.stop()


@pytest.mark.parametrize(
    ("how", "code"),
    [
        (Broken.CONNECT_REFUSED, "connect_failed"),
        (Broken.DNS, "connect_failed"),
        (Broken.TLS, "connect_failed"),
        (Broken.CONNECT_TIMEOUT, "connect_failed"),
        (Broken.READ_TIMEOUT, "submission_unknown"),
        (Broken.RESET, "submission_unknown"),
        (Broken.WRITE_TIMEOUT, "submission_unknown"),
        (Broken.INCOMPLETE_BODY, "submission_unknown"),
        (Broken.TOO_LARGE, "submission_unknown"),
        (Broken.PROTOCOL, "submission_unknown"),
    ],
)
async def test_a_broken_submission(how: Broken, code: str) -> None:
    """ERR-1a ATT-6: sent once; before the body left it is the channel's failure, after it nobody knows."""
    house = House(ExchangeBroken(how))
    fault = await refusal(house.submit(ENDPOINT, JOB))
    assert fault.code == code
    assert len(house.transport.sent) == 1


async def test_nothing_private_leaves_with_a_fault(caplog: pytest.LogCaptureFixture) -> None:
    """ERR-4: a provider that repeats key, prompt and signed URL is quoted without them, and so is the log."""
    said = f"Invalid prompt '{PROMPT[5:40]}…' with Bearer {SECRET} for {FILE}"
    house = House(answer(400, {"error": {"code": "InvalidParameter", "message": said}}))
    with caplog.at_level(logging.DEBUG):
        fault = await refusal(house.submit(ENDPOINT, JOB))
    everything = json.dumps(fault.to_json()) + caplog.text + repr(fault.__cause__) + repr(house.transport.sent[0][1])
    for private in (SECRET, "private storm", "s3cr3tsignature"):
        assert private not in everything
    assert "Invalid prompt" in fault.provider_message


async def test_the_key_goes_into_the_header_and_nowhere_else() -> None:
    """ERR-4: the request that an adapter builds knows no secret; the target hides it in its text forms."""
    house = House(answer(200, {"id": "cgt-1"}))
    await house.submit(ENDPOINT, JOB)
    [(request, target)] = house.transport.sent
    assert target.auth_value == f"Bearer {SECRET}"
    assert SECRET not in repr(request) + repr(target)


async def test_an_unknown_field_is_noticed(caplog: pytest.LogCaptureFixture) -> None:
    """ERR-1: a field that nobody accounts for is a warning and harms nothing."""
    house = House(answer(200, {"id": "cgt-1", "surprise": True}))
    with caplog.at_level(logging.WARNING):
        sent = await house.submit(ENDPOINT, JOB)
    assert sent.provider_task_id == "cgt-1"
    assert [record.message for record in caplog.records] == ["unknown_field"]
    assert vars(caplog.records[0])["fields"] == ["created.surprise"]


async def test_a_call_keeps_within_the_callers_deadline() -> None:
    """OPS-4: the caller's deadline, less a margin to tell the outcome, bounds the exchange; none left, none sent."""
    house = House(answer(200, {"id": "cgt-1"}))
    with deadline_at(house.clock.monotonic() + 8.0):
        await house.submit(ENDPOINT, JOB)
    assert house.transport.sent[0][1].total_s == pytest.approx(7.5)
    with deadline_at(house.clock.monotonic() + 0.2):
        fault = await refusal(house.submit(ENDPOINT, JOB))
    assert fault.code == "deadline_exceeded"
    assert len(house.transport.sent) == 1


async def test_a_store_that_fails_makes_no_second_picture() -> None:
    """ERR-1a SYN-7: what was made and could not be kept is unknown, and no reason to switch."""
    picture = Job("attempt-1", "token-1", "image", "seedream", {"prompt": PROMPT})
    data = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"p" * 80).decode()
    house = House(answer(200, {"data": [{"b64_json": data}]}), DONE)
    house.store.down = True
    fault = await refusal(house.submit(ENDPOINT, picture))
    assert (fault.code, fault.metadata["possibly_charged"]) == ("submission_unknown", "true")
    house.transport.files[FILE] = [download(MP4)]
    poll = await refusal(house.poll(ENDPOINT, JOB, "cgt-1"))
    assert (poll.code, poll.metadata["reason"]) == ("poll_failed", "governance_backend_down")


def page(*tokens: str, at: float, total: int | None = None) -> HttpResponse:
    """A page of tasks of that age."""
    items = [{"id": f"cgt-{token}", "created_at": at, "safety_identifier": token} for token in tokens]
    return answer(200, {"items": items, "total": len(items) if total is None else total})


async def test_records_are_read_to_their_end_and_no_further() -> None:
    """ATT-6: pages are read until the token is found, all is read, or the bound is reached."""
    sent_at = START
    then = START.timestamp()
    house = House(page("a", at=then, total=3), page("b", at=then, total=3), page("token-1", at=then, total=3))
    found = await house.reconcile(ENDPOINT, JOB, sent_at)
    assert (found.verdict, found.provider_task_id) == (Verdict.ACCEPTED, "cgt-token-1")
    assert len(house.transport.sent) == 3
    bounded = House(*[page("x", at=then, total=99)] * 3, reconcile_pages=2)
    bounded.clock.advance(100)
    unknown = await bounded.reconcile(ENDPOINT, JOB, sent_at)
    assert unknown.verdict is Verdict.UNKNOWN
    assert len(bounded.transport.sent) == 2


async def test_records_that_cannot_be_read_prove_nothing() -> None:
    """ATT-6: a 500, a page, a broken connection: UNKNOWN with the reason, never NOT_ACCEPTED."""
    for play in (answer(500, {"error": {"code": "InternalServiceError"}}), answer(200, {}), ExchangeBroken(Broken.DNS)):
        house = House(play)
        house.clock.advance(1000)
        assert (await house.reconcile(ENDPOINT, JOB, START)).verdict is Verdict.UNKNOWN


PICTURE = Job("attempt-1", "token-1", "image", "gpt-image-1", {"prompt": PROMPT})
KEYED = structs.replace(ENDPOINT, adapter="openai", reconcile_by="idempotency_key")
PAINTED = {"data": [{"b64_json": base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"p" * 80).decode()}]}


async def test_the_same_key_again_brings_the_result_that_was_lost() -> None:
    """ATT-6: where the key is honoured the same request under the same key is a query; its answer is the result."""
    house = House(ExchangeBroken(Broken.READ_TIMEOUT), answer(200, PAINTED))
    assert (await refusal(house.submit(KEYED, PICTURE))).code == "submission_unknown"
    told = await house.reconcile(KEYED, PICTURE, START)
    assert (told.verdict, told.result and len(told.result.artifacts)) == (Verdict.ACCEPTED, 1)
    (first, _), (second, _) = house.transport.sent
    assert first == second
    assert first.headers["idempotency-key"] == "token-1"


async def test_what_stands_before_the_keys_proves_nothing() -> None:
    """ATT-6: busy, down, unauthorised, still at work: UNKNOWN however late; refused for itself: only once settled."""
    refused = {"error": {"code": "moderation_blocked", "message": "no"}}
    busy = [answer(status, {"error": {"code": "x", "message": "no"}}) for status in (401, 409, 429, 500, 503)]
    for play in (*busy, ExchangeBroken(Broken.RESET), ExchangeBroken(Broken.DNS)):
        house = House(play)
        house.clock.advance(1000)
        assert (await house.reconcile(KEYED, PICTURE, START)).verdict is Verdict.UNKNOWN, play
    house = House(answer(400, refused), answer(400, refused))
    assert (await house.reconcile(KEYED, PICTURE, START)).verdict is Verdict.UNKNOWN, "the first may be under way"
    house.clock.advance(1000)
    assert (await house.reconcile(KEYED, PICTURE, START)).verdict is Verdict.NOT_ACCEPTED


async def test_nothing_is_sent_again_where_no_key_is_honoured() -> None:
    """ATT-5 ATT-6: without the Channel's word there is no key in the request, and no second request."""
    house = House(ExchangeBroken(Broken.RESET))
    plain = structs.replace(KEYED, reconcile_by="")
    assert (await refusal(house.submit(plain, PICTURE))).code == "submission_unknown"
    house.clock.advance(1000)
    assert (await house.reconcile(plain, PICTURE, START)).verdict is Verdict.UNKNOWN
    ((request, _),) = house.transport.sent
    assert "idempotency-key" not in request.headers


async def test_a_way_that_the_dialect_does_not_have_is_a_broken_configuration() -> None:
    """CAT-6: it surfaces before anything is sent, not when an answer was lost."""
    house = House()
    for way in ("lookup", "idempotency_key"):
        fault = await refusal(house.submit(structs.replace(ENDPOINT, reconcile_by=way), JOB))
        assert fault.code == "source_not_configured"
    assert house.transport.sent == []


async def test_a_lookup_tells_at_once_and_absence_once_it_is_settled() -> None:
    """ATT-6: one question by our token; the task is ours, and none is believed when the submission must be over."""
    kling = structs.replace(ENDPOINT, adapter="kling")
    ours = {"task_id": "k-1", "task_status": "submitted", "task_info": {"external_task_id": "token-1"}}
    none = answer(404, {"code": 1203, "message": "no such task"})
    house = House(answer(200, {"code": 0, "data": ours}), none, none, answer(200, {"code": 0, "data": {}}))
    found = await house.reconcile(kling, JOB, START)
    assert (found.verdict, found.provider_task_id) == (Verdict.ACCEPTED, "k-1")
    assert (await house.reconcile(kling, JOB, START)).verdict is Verdict.UNKNOWN
    house.clock.advance(1000)
    absent = await house.reconcile(kling, JOB, START)
    assert (absent.verdict, absent.evidence) == (
        Verdict.NOT_ACCEPTED,
        "lookup by our token: 0 record(s); none carries our token",
    )
    assert (await house.reconcile(kling, JOB, START)).verdict is Verdict.UNKNOWN, "an answer without a task"


TALK = Job("attempt-2", "token-2", "chat", "gpt", {"messages": [{"role": "user", "content": PROMPT}]})
OPENAI = structs.replace(ENDPOINT, adapter="openai")


def said(content: Any, finish_reason: str = "stop", **message: Any) -> HttpResponse:
    """A completion of one choice."""
    choice = {"message": {"role": "assistant", "content": content, **message}, "finish_reason": finish_reason}
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    return answer(200, {"id": "c-1", "choices": [choice], "usage": usage})


async def test_a_chat_that_is_a_job_gives_its_words_as_a_file() -> None:
    """RUN-7, COST-8: one exchange; the words are kept by digest, told beside, and counted as the provider counted."""
    house = House(said("A quay at dawn."))
    sent = await house.submit(OPENAI, TALK)
    assert sent.result is not None
    [artifact] = sent.result.artifacts
    assert house.store.kept[artifact.sha256] == (b"A quay at dawn.", "text/plain")
    assert sent.result.output == {"text": "A quay at dawn.", "finish_reason": "stop"}
    assert sent.result.usage == {"input_tokens": 7, "output_tokens": 3}
    assert (sent.provider_task_id, len(house.transport.sent)) == ("", 1)


async def test_a_chat_that_nobody_answered_is_in_doubt() -> None:
    """ATT-6: as with every job, what was sent and not answered is never taken for a failure."""
    house = House(ExchangeBroken(Broken.READ_TIMEOUT))
    fault = await refusal(house.submit(OPENAI, TALK))
    assert (fault.code, fault.category) == ("submission_unknown", "unknown")


async def test_a_chat_is_shown_what_another_node_made() -> None:
    """AUTH-4: an artifact in a message goes out as its bytes, and never as a name that no provider knows."""
    house = House(said("It is a film."))
    sha256 = digest(MP4)
    house.store.kept[sha256] = (MP4, "video/mp4")
    parts = [{"type": "text", "text": "What is it?"}, {"type": "video_url", "video_url": {"artifact": sha256}}]
    sent = await house.submit(OPENAI, structs.replace(TALK, input={"messages": [{"role": "user", "content": parts}]}))
    assert sent.result is not None
    body = json.loads(house.transport.sent[0][0].body)
    shown = body["messages"][0]["content"][1]["video_url"]
    assert shown == {"url": "data:video/mp4;base64," + base64.b64encode(MP4).decode()}
    lost = [{"type": "video_url", "video_url": {"artifact": "ab" * 32}}]
    fault = await refusal(
        house.submit(OPENAI, structs.replace(TALK, input={"messages": [{"role": "user", "content": lost}]}))
    )
    assert fault.code == "material_unreachable"
    assert len(house.transport.sent) == 1
