"""What became of callbacks, and the secrets that sign them, over HTTP."""

from tests.contract.edge.house import EdgeHouse


async def test_a_user_reads_what_became_of_its_callbacks(edge: EdgeHouse) -> None:
    """AUTH-5: a message that was given up is told with its last error; another tenant's Run is not found (AUTH-1)."""
    edge.runs.add("r1", "owner")
    edge.callbacks.add("r1", "GIVEN_UP", attempts=7, last_error="answered with status 500")
    async with await edge.user("owner") as owner, await edge.user("stranger") as stranger:
        (told,) = (await owner.get("/v1/runs/r1/callbacks")).json()["callbacks"]
        assert (told["state"], told["attempts"], told["next_at"]) == ("given_up", 7, None)
        assert told["last_error"] == "answered with status 500"
        assert (await stranger.get("/v1/runs/r1/callbacks")).status_code == 404


async def test_an_operator_makes_secrets(edge: EdgeHouse) -> None:
    """AUTH-5: a secret is made for a tenant and shown once; users and a request without a tenant are refused."""
    made = await edge.admin.post("/v1/operator/webhook-secrets", json={"tenant": "owner"})
    assert (made.status_code, made.json()) == (201, {"tenant": "owner", "secret": "whsec_1"})
    assert edge.callbacks.rotated == ["owner"]
    assert (await edge.admin.post("/v1/operator/webhook-secrets", json={})).status_code == 422
    async with await edge.user("owner") as owner:
        assert (await owner.post("/v1/operator/webhook-secrets", json={"tenant": "owner"})).status_code == 403
