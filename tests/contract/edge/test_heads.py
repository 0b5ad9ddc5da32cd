"""Headers and bodies that say two things, and bodies that are packed."""

import gzip

import pytest

from tests.contract.edge.house import ADMIN_KEY, EdgeHouse
from tests.contract.edge.test_problems import check

KEY = ("authorization", f"Bearer {ADMIN_KEY}")


@pytest.mark.parametrize(
    "twice",
    [
        ("authorization", "Bearer none"),
        ("idempotency-key", "k2"),
        ("content-type", "text/csv"),
        ("last-event-id", "7"),
        ("pointsman-timeout", "9"),
    ],
)
async def test_a_header_that_says_two_things(edge: EdgeHouse, twice: tuple[str, str]) -> None:
    """EDG-3: a header of which one would be believed and the other passed over is refused by name, before all else."""
    once = [KEY, ("idempotency-key", "k1"), ("content-type", "application/json"), ("last-event-id", "1")]
    once.append(("pointsman-timeout", "5"))
    async with edge.client() as client:
        told = check(await client.post("/v1/runs", content=b"{}", headers=[*once, twice]), 400, "malformed_request")
        assert told["detail"] == f"the header {twice[0]} is given more than once; give it once"
        accepts = [KEY, ("accept", "application/json"), ("accept", "*/*"), ("cookie", "a=1"), ("cookie", "b=2")]
        assert (await client.get("/v1/runs", headers=accepts)).status_code == 200
    assert edge.runs.created == []


@pytest.mark.parametrize("path", ["/v1/runs", "/v1/chat/completions", "/v1/artifacts", "/v1/operator/catalog:diff"])
@pytest.mark.parametrize("coding", ["gzip", "br", "gzip, identity"])
async def test_a_body_that_is_packed(edge: EdgeHouse, path: str, coding: str) -> None:
    """EDG-3: a packed body is 415 by its coding, wherever it is sent, and is neither unpacked nor kept as it is."""
    packed = gzip.compress(b" " * 1_000_000)
    headers = {"content-encoding": coding, "content-type": "application/json"}
    async with edge.admin as admin:
        told = check(await admin.post(path, content=packed, headers=headers), 415, "unsupported_media_type")
        assert told["detail"].startswith(f"Content-Encoding {coding} is not understood here")
        plain = await admin.post(path, content=b"{}", headers=headers | {"content-encoding": "identity"})
        assert plain.status_code != 415


@pytest.mark.parametrize(
    "path, body",
    [
        ("/v1/runs", b'{"model":"clip","input":{"prompt":"a","prompt":"b"}}'),
        ("/v1/runs/r1/cancel", b'{"reason":"a","reason":"b"}'),
        ("/v1/chat/completions", b'{"model":"a","model":"b","messages":[]}'),
    ],
)
async def test_a_member_that_is_named_twice(edge: EdgeHouse, path: str, body: bytes) -> None:
    """EDG-3: of two members of one name a decoder believes one, and nobody knows which: neither is taken."""
    edge.runs.add("r1", "default")
    async with edge.admin as admin:
        answer = await admin.post(path, content=body, headers={"content-type": "application/json"})
        told = check(answer, 400, "malformed_request")
    assert "more than once; name it once" in told["detail"]
    assert (edge.runs.created, edge.routing.asked) == ([], [])
