"""What each kind asks and what its models have, through RoutingService over loopback (SYN-11, SYN-12, SEL-5)."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from libs.faults.fault import Fault
from libs.telemetry.metrics import PROCESS
from services.routing.app.apply_catalog import apply_catalog
from services.routing.app.catalog_desk import CatalogDesk, CatalogView
from services.routing.domain.catalog import Kind
from services.routing.domain.task import Artifact
from services.routing.domain.usage import Usage
from services.routing.ports.calls import Report
from services.routing.store.catalog_memory import MemoryCatalogStore
from tests.unit.routing.call_stage import HELLO, Then, call_stage, chat_catalog, chat_supply, serving
from tests.unit.routing.dispatch_fakes import FakeProvider

PICTURE = {"image": {"artifact": "a" * 64}}


async def outcome(kind: Kind, capabilities: Mapping[str, Any], given: Mapping[str, Any], **model: Any) -> str:
    """`served`, or the field and the reason of the refusal."""
    supply = replace(chat_supply("a/talk"), kind=kind, capabilities=capabilities)
    async with serving(call_stage(chat_catalog(supply, **model))) as play:
        try:
            await play.invoke(given=given)
        except Fault as fault:
            sent = play.provider.sent()
            return f"{fault.errors[0].pointer} {fault.errors[0].reason}" if not sent else f"sent {sent}"
        return "served"


@pytest.mark.parametrize(
    ("capabilities", "extra", "says"),
    [
        ({}, {"reasoning_effort": "low", "temperature": 0.2}, "served"),
        ({"features": ["reasoning"]}, {"reasoning_effort": "low"}, "served"),
        ({"features": ["tools"]}, {"reasoning_effort": "low"}, "needs feature reasoning, admits tools"),
        ({"parameters": ["top_p", "stop"]}, {"top_p": 0.5, "stop": ["x" * 99]}, "served"),
        ({"parameters": []}, {"temperature": 0}, "needs parameter temperature, admits none"),
        ({"parameters": ["top_p"]}, {"logit_bias": {"50256": -100}}, "needs parameter logit_bias, admits top_p"),
        (
            {"features": []},
            {"response_format": {"type": "json_schema", "json_schema": {}}},
            "needs feature json_schema",
        ),
        ({"max_output_tokens": 99}, {}, "needs 100 tokens of output, admits 99"),
    ],
)
async def test_what_a_model_does_not_have_is_refused(capabilities: Mapping[str, Any], extra: dict[str, Any], says: str):
    """SYN-12, SEL-5: reasoning switches and sampling parameters by the Supply's own list, with the reason, unsent."""
    assert says in await outcome(Kind.CHAT, capabilities, HELLO | extra)


async def test_a_models_own_limits_name_the_field():
    """SYN-12, SEL-2: where the Public Model says what it has, the refusal points at the caller's field."""
    limits = {"features": ["tools"], "parameters": ["top_p"]}
    said = await outcome(Kind.CHAT, {}, HELLO | {"reasoning_effort": "high"}, limits=limits)
    assert said == "/input/reasoning_effort needs feature reasoning, the model admits tools"
    said = await outcome(Kind.CHAT, {}, HELLO | {"seed": 1}, limits=limits)
    assert said == "/input/seed needs parameter seed, the model admits top_p"


@pytest.mark.parametrize(
    ("tasks", "given", "says"),
    [
        (["recognize_text", "parse_layout"], PICTURE | {"task": "parse_layout"}, "served"),
        (["recognize_text"], PICTURE, "served"),
        (["recognize_text"], PICTURE | {"task": "parse_layout"}, "needs task parse_layout, admits recognize_text"),
        (["parse_layout"], PICTURE, "needs task recognize_text, admits parse_layout"),
        (
            ["recognize_text"],
            PICTURE | {"task": "translate"},
            "/input/task must be one of recognize_text, parse_layout",
        ),
    ],
)
async def test_ocr_tasks_are_compared_with_capabilities(tasks: list[str], given: dict[str, Any], says: str):
    """SYN-11: recognize_text, which is meant where nothing is said, and parse_layout."""
    assert says in await outcome(Kind.OCR, {"tasks": tasks}, given)


async def test_the_answer_of_a_kind_with_files_names_them():
    """SYN-11: artifacts by digest with the call, and no token is set aside for a kind without tokens."""
    supply = replace(chat_supply("a/talk"), kind=Kind.IMAGE)
    async with serving(call_stage(chat_catalog(supply))) as play:
        picture = Artifact("b" * 64, "image/png", 12)
        play.script("a/talk", Then(output={"data": []}, report=Report(Usage(images=1)), artifacts=(picture,)))
        answer = await play.invoke(given={"prompt": "a boat"})
        assert [item.sha256 for item in answer.call.artifacts] == ["b" * 64]
        assert answer.call.attempts[0].reserved_tokens == 0
        assert answer.call.usage.images == 1


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (b"{", "malformed_request"),
        (b"[]", "malformed_request"),
        (b'{"messages": [{"role": "user", "content": "\\ud83d"}]}', "malformed_request"),
        ({"messages": []}, "validation_failed"),
        (HELLO | {"colour": "red"}, "validation_failed"),
    ],
)
async def test_an_input_of_the_wrong_shape_is_refused_at_the_door(given: Any, code: str):
    """SEL-2: nothing is asked, reserved or recorded."""
    async with serving(call_stage()) as play:
        assert (await play.refused(given=given)).code == code
        assert await play.store.get("c1") is None


async def test_a_video_is_no_call():
    """SYN-1: a kind that is made over minutes is submitted, not waited for."""
    async with serving(call_stage(chat_catalog(kind=Kind.VIDEO))) as play:
        assert "create a run" in (await play.refused()).message
        assert (await play.refused("c2", tenant="", model="")).errors[0].pointer == "/tenant"


async def test_calls_and_tries_are_counted():
    """SYN-11: by model, Supply and end; tokens by sort, reasoning too; the time of tries and of their first token."""
    async with serving(call_stage()) as play:
        usage = Usage(input_tokens=1000, output_tokens=300, reasoning_tokens=200)
        play.script("a/talk", Then(after_s=1.0, report=Report(usage, "stop", first_token_s=0.5)))
        await play.invoke()
        await play.settled()
        page = PROCESS.page().decode()
        assert 'pointsman_calls_ended_total{code="",model="talk",state="succeeded"}' in page
        assert 'pointsman_call_attempts_ended_total{code="",state="succeeded",supply="a/talk"}' in page
        assert 'pointsman_call_tokens_total{sort="reasoning",supply="a/talk"}' in page
        assert 'pointsman_call_first_token_seconds_count{supply="a/talk"}' in page
        told = await play.call()
        assert told.attempts[0].time_to_first_token.ToMilliseconds() == 500
        assert told.attempts[0].usage.reasoning_tokens == 200


# --- The catalogue ----------------------------------------------------------------------------------------------------


def file(sync: str = "", timeouts: str = "") -> str:
    """A catalogue file with such a policy and such limits."""
    return (
        "version: 1\nchannels:\n  - {id: a, adapter: ark, base_url: 'http://127.0.0.1:1', secret: 'env:KEY'"
        f"{timeouts}}}\nsupplies: []\nprices: []\npolicies:\n  - {{id: quick{sync}}}\nmodels: []\n"
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (file(", sync: {total_timeout_s: 115}"), ""),
        (
            file(", sync: {total_timeout_s: 116}"),
            "policies[0].sync.total_timeout_s: 116 s and 5 s are more than a lease",
        ),
        (file(", sync: {backoff_base_s: 9, backoff_max_s: 3}"), "policies[0].sync.backoff_max_s: must not be below"),
        (file(", sync: {stall_window_s: 0}"), "policies[0].sync.stall_window_s: must be above 0"),
        (file(", sync: {selector: fastest}"), "policies[0].sync.selector: must not be 'fastest'"),
        (file(timeouts=", timeouts: {ttft_s: 0}"), "channels[0].timeouts.ttft_s: ttft_s and inter_token_s go in pairs"),
        (
            file(timeouts=", timeouts: {inter_token_s: 0}"),
            "channels[0].timeouts.inter_token_s: ttft_s and inter_token_s",
        ),
        (file(timeouts=", timeouts: {ttft_s: 0, inter_token_s: 0}"), ""),
        (file(timeouts=", timeouts: {ttft_s: 30}"), ""),
    ],
)
async def test_settings_are_checked_when_they_are_applied(text: str, says: str):
    """SYN-12, CAP-3: refused with the reason, and nothing changes; what fits is taken."""
    store, clock = MemoryCatalogStore(), call_stage().clock
    desk = CatalogDesk(store, CatalogView(store, clock), FakeProvider(), clock)
    if not says:
        assert (await apply_catalog(desk, text, merge=False)).holdings.revision == 1
        return
    with pytest.raises(Fault) as caught:
        await apply_catalog(desk, text, merge=False)
    assert (caught.value.code, await store.revision()) == ("catalog_invalid", 0)
    assert says in caught.value.message


async def test_the_digest_that_is_kept_holds_no_word():
    """ERR-4: neither the record of a selection nor that of the call has a word of the conversation."""
    async with serving(call_stage()) as play:
        await play.invoke()
        told = await play.call()
        assert "Good morning." not in told.selections[0].record_json
        assert json.loads(told.selections[0].record_json)["inputs"]["request"]["input"]["messages"]["count"] == 1
