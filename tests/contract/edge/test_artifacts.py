"""Bytes by their digest: to whom, in which part, under which name."""

import hashlib
from typing import Any

import pytest

from tests.contract.edge.house import EdgeHouse
from tests.contract.edge.test_problems import check
from tests.support.media import picture

CLIP = bytes(range(256)) * 4
SHA256 = hashlib.sha256(CLIP).hexdigest()
PATH = f"/v1/artifacts/{SHA256}"


async def test_an_upload_is_named_by_its_digest(edge: EdgeHouse) -> None:
    """RUN-7: bytes are kept under their SHA-256; the same bytes again are the same artifact."""
    async with await edge.user() as client:
        for _ in range(2):
            made = await client.post("/v1/artifacts", content=CLIP, headers={"content-type": "video/mp4"})
            assert made.status_code == 201
            assert made.json() == {"sha256": SHA256, "media_type": "video/mp4", "bytes": 1024, "url": PATH}
            assert made.headers["location"] == PATH
        frame = (await client.post("/v1/artifacts", content=picture(), headers={"content-type": "text/html"})).json()
        assert frame["media_type"] == "image/png", "media are named by what they are"
        order = {"model": "clip", "input": {"prompt": "x", "first_frame": {"artifact": frame["sha256"]}}}
        assert (await client.post("/v1/runs", json=order)).status_code == 202
    assert edge.runs.created[0].input["first_frame"]["artifact"] == frame["sha256"]


async def test_uploads_are_bounded_and_typed(edge: EdgeHouse) -> None:
    """EDG-3: an upload beyond the limit is 413, one of a malformed type 415; no type at all is plain bytes."""
    async with await edge.user() as client:
        large = {"content-length": str(10**12)}
        check(await client.post("/v1/artifacts", content=b"x", headers=large), 413, "payload_too_large")
        odd = {"content-type": "video mp4"}
        check(await client.post("/v1/artifacts", content=b"x", headers=odd), 415, "unsupported_media_type")
        plain = await client.post("/v1/artifacts", content=b"x")
        assert plain.json()["media_type"] == "application/octet-stream"


@pytest.mark.parametrize(
    "asked, status, content, told",
    [
        (None, 200, CLIP, None),
        ("bytes=0-99", 206, CLIP[:100], "bytes 0-99/1024"),
        ("bytes=1000-", 206, CLIP[1000:], "bytes 1000-1023/1024"),
        ("bytes=-24", 206, CLIP[-24:], "bytes 1000-1023/1024"),
        ("bytes=1000-9999", 206, CLIP[1000:], "bytes 1000-1023/1024"),
        ("bytes=-9999", 206, CLIP, "bytes 0-1023/1024"),
        ("bytes=5-1", 200, CLIP, None),
        ("bytes=0-1,5-6", 200, CLIP, None),
        ("lines=0-1", 200, CLIP, None),
        ("bytes=-", 200, CLIP, None),
    ],
)
async def test_ranges(edge: EdgeHouse, asked: str | None, status: int, content: bytes, told: str | None) -> None:
    """RUN-7: one range of bytes is served as 206; several, or one that cannot be read, as the whole."""
    async with await edge.user() as client:
        await client.post("/v1/artifacts", content=CLIP, headers={"content-type": "video/mp4"})
        answer = await client.get(PATH, headers={"range": asked} if asked else {})
        assert (answer.status_code, answer.content, answer.headers.get("content-range")) == (status, content, told)
        assert answer.headers["content-length"] == str(len(content))
        assert answer.headers["content-type"] == "video/mp4"
        assert answer.headers["accept-ranges"] == "bytes"
        assert answer.headers["etag"] == f'"{SHA256}"'
        head = await client.head(PATH, headers={"range": asked} if asked else {})
        assert (head.status_code, head.content) == (status, b"")
        assert head.headers["content-length"] == str(len(content))


@pytest.mark.parametrize("asked", ["bytes=1024-", "bytes=5000-6000", "bytes=-0"])
async def test_ranges_outside(edge: EdgeHouse, asked: str) -> None:
    """EDG-3: a range that begins outside is 416 and tells the size."""
    async with await edge.user() as client:
        await client.post("/v1/artifacts", content=CLIP)
        answer = await client.get(PATH, headers={"range": asked})
    check(answer, 416, "range_not_satisfiable")
    assert answer.headers["content-range"] == "bytes */1024"


@pytest.mark.parametrize(
    "headers, status",
    [
        ({"if-none-match": f'"{SHA256}"'}, 304),
        ({"if-none-match": f'"x", W/"{SHA256}"'}, 304),
        ({"if-none-match": "*"}, 304),
        ({"if-none-match": '"x"'}, 200),
        ({"range": "bytes=0-1", "if-range": f'"{SHA256}"'}, 206),
        ({"range": "bytes=0-1", "if-range": '"x"'}, 200),
    ],
)
async def test_conditions(edge: EdgeHouse, headers: dict[str, str], status: int) -> None:
    """RUN-7: whoever has the bytes is told so; a range of something else is the whole."""
    async with await edge.user() as client:
        await client.post("/v1/artifacts", content=CLIP)
        answer = await client.get(PATH, headers=headers)
    assert answer.status_code == status
    assert (answer.content == b"") == (status == 304)


async def test_what_could_run_is_not_shown(edge: EdgeHouse) -> None:
    """EDG-3: media that a browser could run as ours is saved, and nothing of it may act."""
    async with await edge.user() as client:
        page = await client.post("/v1/artifacts", content=b"<script>", headers={"content-type": "text/html"})
        shown = await client.get(page.json()["url"])
    assert shown.headers["content-disposition"] == "attachment"
    assert "sandbox" in shown.headers["content-security-policy"]
    assert shown.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["/v1/runs/r1", "/v1/runs", "/v1/runs/r1/join", "/v1/runs/r1/events", "/v1/tasks/t1"])
async def test_what_a_tenant_was_shown_it_may_read(edge: EdgeHouse, path: str) -> None:
    """AUTH-1: an artifact becomes readable to the tenant whose run or task shows it, and to nobody else."""
    blob = await edge.blobs.put(CLIP, "video/mp4")
    edge.runs.add("r1")
    edge.runs.succeed("r1", blob.sha256)
    edge.routing.add("t1", sha256=blob.sha256)
    async with await edge.user() as owner, await edge.user("stranger") as stranger:
        check(await owner.get(PATH), 404, "not_found")
        assert (await owner.get(path)).status_code == 200
        assert (await owner.get(PATH)).content == CLIP
        await stranger.get(path)
        check(await stranger.get(PATH), 404, "not_found")


async def test_operators_read_every_artifact(edge: EdgeHouse) -> None:
    """AUTH-1: whoever operates may see what was made, whoever asked for it; unknown bytes stay unknown."""
    await edge.blobs.put(CLIP, "video/mp4")
    async with edge.admin as admin:
        assert (await admin.get(PATH)).content == CLIP
        check(await admin.get(f"/v1/artifacts/{'cd' * 32}"), 404, "not_found")
        check(await admin.get("/v1/artifacts/..%2F..%2Fetc%2Fpasswd"), 404, "not_found")


@pytest.mark.parametrize(
    "kind, data",
    [
        ("run_created", {"labels": {"sha256": SHA256}, "sha256": SHA256, "artifacts": [SHA256]}),
        ("artifact_written", {"sha256": [SHA256]}),
        ("node_completed", {"artifacts": [{"sha256": SHA256}]}),
    ],
)
async def test_words_of_a_caller_grant_nothing(edge: EdgeHouse, kind: str, data: dict[str, Any]) -> None:
    """AUTH-1: a digest grants a right only where runs itself has put it, never where a caller could have."""
    await edge.blobs.put(CLIP, "video/mp4")
    edge.runs.add("r1", labels={"sha256": SHA256})
    edge.runs.tell("r1", kind, **data)
    async with await edge.user() as client:
        assert (await client.get("/v1/runs/r1/events")).status_code == 200
        assert (await client.get("/v1/runs/r1")).status_code == 200
        check(await client.get(PATH), 404, "not_found")
        order = {"model": "clip", "input": {"first_frame": {"artifact": SHA256}}}
        check(await client.post("/v1/runs", json=order), 422, "validation_failed")
