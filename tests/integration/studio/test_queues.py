"""The dialects of the queues over a real socket: fal, Replicate, DashScope, and OpenAI's clips."""

import asyncio
import io
import time
from collections.abc import Callable
from typing import Any

import pytest
from PIL import Image

FAL, FLUX = "bytedance/seedance/v2/text-to-video", "fal-ai/flux/dev"
REPLICATE, DASHSCOPE = "/models/bytedance/seedance-1-pro/predictions", "/services/aigc/video-generation/video-synthesis"
ASYNC = {"X-DashScope-Async": "enable"}
POLL_S = 0.02


class Queues:
    """One caller of all four dialects, with the key in the form that each wants."""

    def __init__(self, caller: Any) -> None:
        self.caller = caller

    async def call(self, method: str, account: str, path: str, *, headers: Any = None, **options: Any) -> Any:
        """Status, JSON and headers of one request."""
        studio, scheme = self.caller.studio, "Key" if account == "gale" else "Bearer"
        sent = {"Authorization": f"{scheme} {studio.key(account)}", **(headers or {})}
        url = path if path.startswith("http") else studio.base_url(account) + path
        async with self.caller.session.request(method, url, headers=sent, **options) as answer:
            body = await answer.json(content_type=None) if answer.content_type != "video/mp4" else await answer.read()
            return answer.status, body, answer.headers

    async def until(self, account: str, path: str, wanted: Callable[[Any], bool]) -> Any:
        """Asks until the body is as wanted."""
        deadline = time.monotonic() + 20
        while True:
            _, body, _ = await self.call("GET", account, path)
            if wanted(body):
                return body
            assert time.monotonic() < deadline, body
            await asyncio.sleep(POLL_S)

    async def ledger(self, account: str) -> Any:
        """The ledger of an account."""
        return await self.caller.lab("GET", f"/ledger?account={account}")


@pytest.fixture
def queues(caller) -> Queues:
    """The caller."""
    return Queues(caller)


async def fetched(queues: Queues, url: str) -> bytes:
    """The bytes behind a public URL, without a key."""
    async with queues.caller.session.get(url) as file:
        assert file.status == 200
        return await file.read()


async def test_fal_from_the_queue_to_the_result(queues):
    """fal: 202 under way, 200 when COMPLETED, the result at its own address, units in a header; a real clip."""
    body = {"prompt": "a storm", "duration": "4", "resolution": "480p", "aspect_ratio": "16:9"}
    status, made, _ = await queues.call("POST", "gale", f"/{FAL}", json=body)
    assert (status, made["status"]) == (200, "IN_QUEUE")
    assert made["status_url"].endswith(f"/gale/bytedance/seedance/requests/{made['request_id']}/status")
    done = await queues.until("gale", made["status_url"], lambda told: told["status"] == "COMPLETED")
    assert "error" not in done
    status, result, headers = await queues.call("GET", "gale", made["response_url"])
    assert (status, headers["x-fal-billable-units"]) == (200, "4")
    assert (await fetched(queues, result["video"]["url"]))[4:8] == b"ftyp"
    assert (await queues.ledger("gale"))["totals"]["charged"] == {"USD": "0.20"}


async def test_fal_knows_requests_at_owner_and_app_alone(queues):
    """fal: under an endpoint's path a status is a 405, under another app a 404; a result too early is a 400."""
    await queues.caller.lab("POST", "/accounts/gale", {"queue_s": 30.0})
    _, made, _ = await queues.call("POST", "gale", f"/{FAL}", json={"prompt": "a storm"})
    request = f"/requests/{made['request_id']}"
    assert (await queues.call("GET", "gale", f"/{FAL}{request}/status"))[0] == 405
    assert (await queues.call("GET", "gale", f"/fal-ai/flux{request}/status"))[0] == 404
    assert (await queues.call("GET", "gale", f"/bytedance/seedance{request}"))[0] == 400
    assert (await queues.call("GET", "gale", f"/bytedance/seedance{request}/status"))[0] == 202


async def test_fal_tells_a_models_refusal_in_the_result_and_a_runners_in_the_status(queues):
    """fal: both are COMPLETED; one has an error inside, the other a 422 with a list."""
    _, made, _ = await queues.call("POST", "gale", f"/{FAL}", json={"prompt": "[moderated-late]"})
    done = await queues.until("gale", made["status_url"], lambda told: told["status"] == "COMPLETED")
    assert "error" not in done
    status, result, _ = await queues.call("GET", "gale", made["response_url"])
    assert (status, result["detail"][0]["type"]) == (422, "content_policy_violation")
    fail = {"fail_task": {"code": "runner_disconnected", "message": "Runner disconnected"}}
    await queues.caller.lab("POST", "/script", {"match": {"account": "gale"}, "then": [fail]})
    _, made, _ = await queues.call("POST", "gale", f"/{FAL}", json={"prompt": "a storm"})
    done = await queues.until("gale", made["status_url"], lambda told: told["status"] == "COMPLETED")
    assert (done["error"], done["error_type"]) == ("Runner disconnected", "runner_disconnected")
    assert (await queues.ledger("gale"))["totals"]["charged"] == {}


async def test_fal_takes_a_waiting_request_out_and_only_asks_a_running_one(queues):
    """fal: OK, CANCELLATION_REQUESTED, ALREADY_COMPLETED, NOT_FOUND."""
    await queues.caller.lab("POST", "/accounts/gale", {"queue_s": 30.0})
    _, made, _ = await queues.call("POST", "gale", f"/{FAL}", json={"prompt": "a storm"})
    assert (await queues.call("PUT", "gale", made["cancel_url"]))[:2] == (200, {"status": "OK"})
    _, told, _ = await queues.call("GET", "gale", made["status_url"])
    assert (told["status"], told["error_type"]) == ("COMPLETED", "client_cancelled")
    assert (await queues.call("PUT", "gale", made["cancel_url"]))[:2] == (400, {"status": "ALREADY_COMPLETED"})
    await queues.caller.lab("POST", "/accounts/gale", {"queue_s": 0.0, "render_s": 30.0})
    _, made, _ = await queues.call("POST", "gale", f"/{FAL}", json={"prompt": "a storm"})
    await queues.until("gale", made["status_url"], lambda told: told["status"] == "IN_PROGRESS")
    status, told, _ = await queues.call("PUT", "gale", made["cancel_url"])
    assert (status, told) == (202, {"status": "CANCELLATION_REQUESTED"})
    assert (await queues.call("PUT", "gale", "/bytedance/seedance/requests/nobody/cancel"))[0] == 404


async def test_fal_draws_pictures_of_the_asked_size(queues):
    """fal: pictures are a task as well, and charged by number."""
    body = {"prompt": "fire", "image_size": {"width": 320, "height": 192}, "num_images": 2, "seed": 3}
    _, made, _ = await queues.call("POST", "gale", f"/{FLUX}", json=body)
    await queues.until("gale", made["status_url"], lambda told: told["status"] == "COMPLETED")
    _, result, _ = await queues.call("GET", "gale", made["response_url"])
    assert len(result["images"]) == 2
    image = Image.open(io.BytesIO(await fetched(queues, result["images"][1]["url"])))
    assert image.size == (320, 192)
    assert (await queues.ledger("gale"))["totals"]["charged"] == {"USD": "0.05"}


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        ({"prompt": "[moderated]"}, 422, "content_policy_violation"),
        ({"prompt": "x", "duration": "99"}, 422, "value_error"),
        ({"prompt": "x", "duration": "soon"}, 422, "value_error"),
        ({}, 422, "missing"),
        ({"prompt": "x", "image_url": "data:,no"}, 422, "image_load_error"),
    ],
)
async def test_fal_refuses_in_the_models_shape(queues, body, status, kind):
    """fal: what is against the input is a list of typed entries."""
    told, answer, _ = await queues.call("POST", "gale", f"/{FAL}", json=body)
    assert (told, answer["detail"][0]["type"]) == (status, kind)
    assert (await queues.ledger("gale"))["totals"]["accepted"] == 0


async def test_fal_refuses_in_the_queues_shape(queues):
    """fal: a wrong key, an unknown app and a full account are a text with a type, the last in a header too."""
    told, answer, _ = await queues.call("POST", "gale", "/nobody/nothing", json={"prompt": "x"})
    assert (told, answer["detail"]) == (404, 'Application "nobody/nothing" not found')
    await queues.caller.lab("POST", "/accounts/gale", {"concurrency": 0})
    told, answer, headers = await queues.call("POST", "gale", f"/{FAL}", json={"prompt": "x"})
    assert (told, answer["error_type"], headers["x-fal-error-type"]) == (429, *["concurrent_requests_limit"] * 2)
    assert (await queues.caller.call("POST", "gale", f"/{FAL}", json={"prompt": "x"}))[0] == 401  # Bearer, not Key


async def test_replicate_from_creation_to_output(queues):
    """Replicate: 201 starting, processing, succeeded with one address and metrics."""
    body = {"input": {"prompt": "a storm", "duration": 4, "resolution": "480p"}}
    status, made, _ = await queues.call("POST", "haze", REPLICATE, json=body)
    assert (status, made["status"], made["output"]) == (201, "starting", None)
    done = await queues.until("haze", made["urls"]["get"], lambda told: told["status"] == "succeeded")
    assert done["metrics"]["video_output_duration_seconds"] == 4
    assert (await fetched(queues, done["output"]))[4:8] == b"ftyp"
    assert (await queues.ledger("haze"))["totals"]["charged"] == {"USD": "0.12"}


async def test_replicate_draws_pictures_as_a_list(queues):
    """Replicate: several outputs are a list of addresses."""
    body = {"input": {"prompt": "fire", "width": 128, "height": 64, "num_outputs": 2}}
    _, made, _ = await queues.call("POST", "haze", "/models/black-forest-labs/flux-dev/predictions", json=body)
    done = await queues.until("haze", made["urls"]["get"], lambda told: told["status"] == "succeeded")
    image = Image.open(io.BytesIO(await fetched(queues, done["output"][0])))
    assert (len(done["output"]), image.size) == (2, (128, 64))


async def test_replicate_stops_what_waits_and_what_runs(queues):
    """Replicate: a wish to cancel is no submission; it works on both, and leaves an ended one alone."""
    await queues.caller.lab("POST", "/accounts/haze", {"queue_s": 30.0})
    _, waiting, _ = await queues.call("POST", "haze", REPLICATE, json={"input": {"prompt": "a storm"}})
    assert (await queues.call("POST", "haze", waiting["urls"]["cancel"]))[1]["status"] == "canceled"
    await queues.caller.lab("POST", "/accounts/haze", {"queue_s": 0.0, "render_s": 30.0})
    _, running, _ = await queues.call("POST", "haze", REPLICATE, json={"input": {"prompt": "a storm"}})
    await queues.until("haze", running["urls"]["get"], lambda told: told["status"] == "processing")
    assert (await queues.call("POST", "haze", running["urls"]["cancel"]))[1]["status"] == "canceled"
    assert (await queues.call("POST", "haze", running["urls"]["cancel"]))[1]["status"] == "canceled"
    told = await queues.ledger("haze")
    assert (told["posts"]["count"], told["totals"]["by_status"]) == (2, {"cancelled": 2})
    await queues.caller.lab("POST", "/accounts/haze", {"render_s": 0.0})
    _, after, _ = await queues.call("POST", "haze", REPLICATE, json={"input": {"prompt": "a storm"}})
    await queues.until("haze", after["urls"]["get"], lambda told: told["status"] == "succeeded")


async def test_a_wish_to_cancel_uses_no_step_of_a_rule_for_submissions(queues):
    """The fault script: a POST that creates nothing is matched by its path or method only."""
    await queues.caller.lab("POST", "/accounts/haze", {"queue_s": 30.0})
    _, made, _ = await queues.call("POST", "haze", REPLICATE, json={"input": {"prompt": "a storm"}})
    await queues.caller.lab("POST", "/script", {"match": {"account": "haze"}, "then": [{"status": 500}]})
    assert (await queues.call("POST", "haze", made["urls"]["cancel"]))[0] == 200
    assert (await queues.call("POST", "haze", REPLICATE, json={"input": {"prompt": "a storm"}}))[0] == 500


async def test_replicate_lists_page_by_page_behind_a_mark(queues):
    """Replicate: newest first, with the words of each; `next` leads on until there is nothing more."""
    ids = []
    for number in range(3):
        _, made, _ = await queues.call("POST", "haze", REPLICATE, json={"input": {"prompt": f"storm {number}"}})
        ids.append(made["id"])
    _, page, _ = await queues.call("GET", "haze", "/predictions")
    assert ([item["id"] for item in page["results"]], page["next"]) == (ids[::-1], None)
    assert page["results"][0]["input"] == {"prompt": "storm 2"}
    _, rest, _ = await queues.call("GET", "haze", f"/predictions?cursor={ids[2]}")
    assert [item["id"] for item in rest["results"]] == [ids[1], ids[0]]


async def test_replicate_says_why_in_one_text(queues):
    """Replicate: moderation is E005 within a text, at the door and after; what waited too long is aborted."""
    status, answer, _ = await queues.call("POST", "haze", REPLICATE, json={"input": {"prompt": "[moderated]"}})
    assert (status, "E005" in answer["detail"]) == (422, True)
    _, made, _ = await queues.call("POST", "haze", REPLICATE, json={"input": {"prompt": "[moderated-late]"}})
    done = await queues.until("haze", made["urls"]["get"], lambda told: told["status"] == "failed")
    assert "(E005)" in done["error"]
    await queues.caller.lab("POST", "/script", {"match": {"account": "haze"}, "then": [{"expire_task": True}]})
    _, made, _ = await queues.call("POST", "haze", REPLICATE, json={"input": {"prompt": "a storm"}})
    await queues.until("haze", made["urls"]["get"], lambda told: told["status"] == "aborted")
    status, answer, _ = await queues.call("POST", "haze", "/predictions", json={"version": "x", "input": {}})
    assert (status, answer["title"]) == (404, "Model not found")


async def test_dashscope_from_task_to_clip(queues):
    """DashScope: a task only under the header; PENDING, RUNNING, SUCCEEDED with the clip and what is charged."""
    body = {"model": "wan2.7-t2v", "input": {"prompt": "a storm"}, "parameters": {"resolution": "720P", "duration": 2}}
    status, answer, _ = await queues.call("POST", "iris", DASHSCOPE, json=body)
    assert (status, answer["code"]) == (403, "AccessDenied")
    _, made, _ = await queues.call("POST", "iris", DASHSCOPE, json=body, headers=ASYNC)
    path = f"/tasks/{made['output']['task_id']}"
    done = await queues.until("iris", path, lambda told: told["output"]["task_status"] == "SUCCEEDED")
    assert done["usage"] == {"duration": 2, "video_count": 1, "SR": 720, "ratio": "16:9"}
    assert (await fetched(queues, done["output"]["video_url"]))[4:8] == b"ftyp"
    told = await queues.ledger("iris")
    assert (told["totals"]["charged"], told["refused"]["by_code"]) == ({"CNY": "1.20"}, {"AccessDenied": 1})


async def test_dashscope_cancels_what_is_pending_and_nothing_else(queues):
    """DashScope: of any other task the wish is refused; an unknown task is UNKNOWN under a 200."""
    await queues.caller.lab("POST", "/accounts/iris", {"queue_s": 30.0})
    body = {"model": "wan2.7-t2v", "input": {"prompt": "a storm"}, "parameters": {}}
    _, made, _ = await queues.call("POST", "iris", DASHSCOPE, json=body, headers=ASYNC)
    path = f"/tasks/{made['output']['task_id']}"
    assert (await queues.call("POST", "iris", f"{path}/cancel"))[0] == 200
    assert (await queues.call("GET", "iris", path))[1]["output"]["task_status"] == "CANCELED"
    status, answer, _ = await queues.call("POST", "iris", f"{path}/cancel")
    assert (status, answer["code"]) == (400, "UnsupportedOperation")
    status, answer, _ = await queues.call("GET", "iris", "/tasks/nobody")
    assert (status, answer["output"]) == (200, {"task_id": "nobody", "task_status": "UNKNOWN"})


async def test_dashscope_lists_tasks_without_their_input(queues):
    """DashScope: newest first, by number of page, with a total."""
    body = {"model": "wan2.2-t2i-flash", "input": {"prompt": "fire"}, "parameters": {"size": "128*64", "n": 1}}
    path = "/services/aigc/text2image/image-synthesis"
    made = [(await queues.call("POST", "iris", path, json=body, headers=ASYNC))[1] for _ in range(3)]
    ids = [one["output"]["task_id"] for one in made]
    _, page, _ = await queues.call("GET", "iris", "/tasks?page_no=1&page_size=2")
    assert ([row["task_id"] for row in page["data"]], page["total"], page["total_page"]) == ([ids[2], ids[1]], 3, 2)
    assert "fire" not in str(page)
    done = await queues.until("iris", f"/tasks/{ids[0]}", lambda told: told["output"]["task_status"] == "SUCCEEDED")
    image = Image.open(io.BytesIO(await fetched(queues, done["output"]["results"][0]["url"])))
    assert (image.size, done["usage"]) == ((128, 64), {"image_count": 1})


async def test_openai_clips_are_behind_the_key(queues):
    """OpenAI: seconds are a text; the bytes are under the clip's own path and not to be had without the key."""
    status, answer, _ = await queues.call(
        "POST", "juniper", "/videos", json={"model": "sora-2", "prompt": "x", "seconds": 4}
    )
    assert (status, answer["error"]["param"]) == (400, "seconds")
    body = {"model": "sora-2", "prompt": "a storm", "seconds": "4", "size": "1280x720"}
    _, made, _ = await queues.call("POST", "juniper", "/videos", json=body)
    assert (made["object"], made["status"], made["seconds"]) == ("video", "queued", "4")
    done = await queues.until("juniper", f"/videos/{made['id']}", lambda told: told["status"] == "completed")
    assert done["expires_at"] > done["completed_at"]
    path = f"/videos/{made['id']}/content"
    status, clip, headers = await queues.call("GET", "juniper", path)
    assert (status, headers["content-type"], clip[4:8]) == (200, "video/mp4", b"ftyp")
    async with queues.caller.session.get(queues.caller.studio.base_url("juniper") + path) as bare:
        assert bare.status == 401
    assert (await queues.ledger("juniper"))["totals"]["charged"] == {"USD": "0.40"}


async def test_openai_clips_are_listed_behind_the_last(queues):
    """OpenAI: newest first; has_more and last_id lead on."""
    made = []
    for number in range(3):
        body = {"model": "sora-2", "prompt": f"storm {number}", "size": "1280x720"}
        made.append((await queues.call("POST", "juniper", "/videos", json=body))[1]["id"])
    _, page, _ = await queues.call("GET", "juniper", "/videos?limit=2&order=desc")
    assert ([one["id"] for one in page["data"]], page["has_more"]) == ([made[2], made[1]], True)
    assert page["data"][0]["prompt"] == "storm 2"
    _, rest, _ = await queues.call("GET", "juniper", f"/videos?limit=2&after={page['last_id']}")
    assert ([one["id"] for one in rest["data"]], rest["has_more"]) == ([made[0]], False)


async def test_openai_clips_fail_with_an_error(queues):
    """OpenAI: moderation after the fact is a failed clip with a code."""
    body = {"model": "sora-2", "prompt": "[moderated-late]", "size": "1280x720"}
    _, made, _ = await queues.call("POST", "juniper", "/videos", json=body)
    done = await queues.until("juniper", f"/videos/{made['id']}", lambda told: told["status"] == "failed")
    assert done["error"]["code"] == "moderation_blocked"
    assert (await queues.call("GET", "juniper", f"/videos/{made['id']}/content"))[0] == 404
