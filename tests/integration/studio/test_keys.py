"""Two ways to find a lost job: the account's own idempotency keys, and the caller's id in the Kling dialect."""

import asyncio

import aiohttp
import pytest

from services.studio.compose import Studio
from services.studio.settings import StudioConfig
from tests.support.waiting import eventually_async

PICTURE = {"model": "gpt-image-1", "prompt": "a harbour", "size": "640x360"}
CUT = (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError)
WORDS = "/videos/text2video"


async def paint(caller, key: str = "k-1", **fields) -> tuple[int, dict]:
    """A picture under a key."""
    headers = {"Authorization": f"Bearer {caller.studio.key('dahlia')}", "Idempotency-Key": key}
    url = caller.studio.base_url("dahlia") + "/images/generations"
    async with caller.session.post(url, json=PICTURE | fields, headers=headers) as answer:
        return answer.status, await answer.json()


async def test_the_same_request_under_one_key_is_one_job(caller):
    """VER-7: the second is answered as the first was, also when that answer was lost; one job, one charge."""
    await caller.lab("POST", "/accounts/dahlia", {"honours_keys": True})
    await caller.lab("POST", "/script", {"match": {"account": "dahlia"}, "then": [{"drop_after_body": True}]})
    with pytest.raises(CUT):
        await paint(caller)
    first, second = await paint(caller), await paint(caller)
    assert first == second
    assert first[0] == 200
    told = await caller.lab("GET", "/ledger")
    assert (len(told["submissions"]), told["totals"]["charged"]) == (1, {"USD": "0.04"})
    assert (told["posts"]["count"], told["posts"]["replayed"]) == (3, 2)


async def test_a_key_at_work_and_a_key_of_another_request(caller):
    """409 while the first is being worked on, 422 for another request; a refused request leaves its key free."""
    await caller.lab("POST", "/accounts/dahlia", {"honours_keys": True, "render_s": 0.5})
    first = asyncio.create_task(paint(caller))
    statuses = []
    while not first.done():
        statuses.append((await paint(caller))[0] if (await caller.lab("GET", "/ledger"))["submissions"] else 409)
    assert statuses[0] == 409
    assert (await first)[0] == 200
    status, body = await paint(caller, prompt="another")
    assert (status, body["error"]["code"]) == (422, "idempotency_key_reused")
    assert (await paint(caller, "k-2", size="wide"))[0] == 400
    assert (await paint(caller, "k-2"))[0] == 200


async def test_a_key_that_was_used_before_a_restart_makes_no_second_job(caller_of, config: StudioConfig, tmp_path):
    """The answer is gone with the process, the job is not: 409 for ever, and one job in the ledger."""
    for statuses in (200, 409):
        async with Studio(config, tmp_path / "same") as studio, aiohttp.ClientSession() as session:
            caller = caller_of(studio, session)
            await caller.lab("POST", "/accounts/dahlia", {"honours_keys": True})
            assert (await paint(caller))[0] == statuses
            assert (await caller.lab("GET", "/ledger"))["totals"]["accepted"] == 1


async def test_an_account_that_honours_no_key_makes_two(caller):
    """Most providers: the header is a word for their logs."""
    assert [(await paint(caller))[0] for _ in range(2)] == [200, 200]
    assert (await caller.lab("GET", "/ledger"))["totals"]["accepted"] == 2


async def test_a_kling_task_is_found_by_the_callers_id(caller):
    """Create, look up by external_task_id, poll to a clip with a duration; the id is unique, an unknown one is 1203."""
    body = {"model_name": "kling-v3", "prompt": "a fjord", "duration": "5", "external_task_id": "mine"}
    status, made = await caller.call("POST", "fjord", WORDS, json=body)
    assert (status, made["code"], made["data"]["task_status"]) == (200, 0, "submitted")
    _, found = await caller.call("GET", "fjord", f"{WORDS}?external_task_id=mine")
    assert found["data"]["task_id"] == made["data"]["task_id"]
    status, absent = await caller.call("GET", "fjord", f"{WORDS}?external_task_id=other")
    assert (status, absent["code"]) == (404, 1203)
    status, again = await caller.call("POST", "fjord", WORDS, json=body)
    assert (status, again["code"]) == (400, 1201)
    _, listed = await caller.call("GET", "fjord", WORDS)
    assert [item["task_info"]["external_task_id"] for item in listed["data"]] == ["mine"]

    async def ended() -> bool:
        task.update((await caller.call("GET", "fjord", f"{WORDS}/{made['data']['task_id']}"))[1]["data"])
        return task["task_status"] in ("succeed", "failed")

    task: dict = {}
    await eventually_async(ended)
    (video,) = task["task_result"]["videos"]
    async with caller.session.get(video["url"]) as file:
        assert (file.status, file.headers["content-type"]) == (200, "video/mp4")
    assert (await caller.lab("GET", "/ledger"))["totals"]["charged"] == {"CNY": "3.50"}


async def test_kling_refuses_in_numbers(caller):
    """A wrong model, duration, mode or key, and a marker of moderation, by the dialect's own numbers."""
    good = {"model_name": "kling-v3", "prompt": "a fjord"}
    cases = [
        ({"model_name": "kling-v0"}, 404, 1203),
        ({"duration": "99"}, 400, 1201),
        ({"mode": "4k"}, 400, 1201),
        ({"prompt": ""}, 400, 1201),
        ({"prompt": "[moderated]"}, 400, 1301),
    ]
    for change, status, code in cases:
        told, body = await caller.call("POST", "fjord", WORDS, json=good | change)
        assert (told, body["code"]) == (status, code), change
    await caller.lab("POST", "/accounts/fjord", {"revoked": True})
    told, body = await caller.call("POST", "fjord", WORDS, json=good)
    assert (told, body["code"]) == (401, 1000)
