"""What the service says about itself and its configuration."""

import pytest

from libs.faults.failures import failure_from_proto
from libs.rpc.faulting import faults_from_rpc
from pointsman.common.v1 import failure_pb2
from pointsman.provider_adapter.v1 import provider_service_pb2 as pb
from services.provider_adapter.adapters.registry import ADAPTERS


async def test_the_dialects_on_offer(rig) -> None:
    """ERR-3: ListAdapters names kinds, how an unanswered submission is resolved, and what is ignored on purpose."""
    answer = await rig.stub.ListAdapters(pb.ListAdaptersRequest(), timeout=5)
    told = {a.name: a for a in answer.adapters}
    assert list(told) == sorted(ADAPTERS)
    ark, kling, openai = told["ark"], told["kling"], told["openai"]
    assert (list(ark.kinds), ark.reconcile_by, ark.cancels) == (["video", "image"], "list", True)
    assert (kling.reconcile_by, kling.cancels, kling.states["succeed"]) == ("lookup", False, "succeeded")
    assert (list(openai.reconcile_offers), list(openai.streamed_kinds)) == (["idempotency_key"], ["chat"])
    ways = {name: (adapter.reconcile_by, adapter.cancels) for name, adapter in told.items()}
    assert (ways["fal"], ways["openai"]) == (("none", True), ("list", False))
    assert ways["replicate"] == ways["dashscope"] == ("list", True)
    assert told["fal"].auth == "Authorization: Key"
    assert openai.auth == "Authorization: Bearer"
    assert openai.cost_fields["chat.usage.completion_tokens"] == "output tokens"
    assert "task.updated_at" in ark.ignored_fields
    assert all(adapter.quality.recorded_exchanges >= 20 for adapter in answer.adapters)
    assert told["minimax"].quality.classified_failures == told["minimax"].quality.labelled_failures > 0
    assert (told["kling"].quality.reconciles, told["runway"].quality.reconciles) == (True, False)
    assert [(told[name].reconcile_by, told[name].cancels) for name in ("minimax", "runway", "vidu")] == [
        ("list", True),
        ("none", True),
        ("none", True),
    ]


async def test_a_foreign_reply_is_judged_by_the_same_path(rig) -> None:
    """ERR-1: ClassifyFailure names the fault and what in the reply proved it."""
    request = pb.ClassifyFailureRequest(
        adapter="generic",
        api="chat",
        phase="submit",
        http_status=400,
        headers={"Retry-After": "3"},
        body=b'{"error": {"message": "credit balance is too low", "type": "invalid_request_error"}}',
    )
    failure = (await rig.stub.ClassifyFailure(request, timeout=5)).failure
    assert failure.category == failure_pb2.FAILURE_CATEGORY_SUPPLY
    assert failure.evidence == "body.error.message"
    assert failure_from_proto(failure).code == "balance_exhausted"


@pytest.mark.parametrize(("adapter", "phase"), [("nobody", "submit"), ("ark", "dream")])
async def test_a_question_that_cannot_be_judged(rig, adapter: str, phase: str) -> None:
    """ERR-2: an unknown adapter or phase is the caller's mistake, by name of the field."""

    async def ask() -> None:
        async with faults_from_rpc():
            await rig.stub.ClassifyFailure(pb.ClassifyFailureRequest(adapter=adapter, phase=phase), timeout=5)

    assert (await rig.refusal(ask())).code == "validation_failed"


async def test_what_is_not_configured_is_said_at_once(rig, job) -> None:
    """CAT-6: an unknown adapter, kind, secret or base URL is `source_not_configured`, never retryable, nothing sent."""
    for account, work, changes in (
        ("aurora", job(prompt="x"), {"adapter": "nobody"}),
        ("aurora", job(kind="speech", text="x"), {}),
        ("aurora", job(prompt="x"), {"secret_ref": "env:NOWHERE"}),
        ("aurora", job(prompt="x"), {"base_url": "ftp://example.com"}),
    ):
        fault = await rig.refusal(rig.submit(account, work, **changes))
        assert (fault.code, fault.retryable) == ("source_not_configured", False)
    assert await rig.posts("aurora") == 0


async def test_secrets_are_checked_without_being_told(rig, tmp_path) -> None:
    """CAT-3: which references can be read; the answer never holds a secret."""
    rig.secrets["SET"] = "s3cret-value"
    (tmp_path / "key").write_text("s3cret-file\n")
    refs = ["env:SET", "env:UNSET", f"file:{tmp_path}/key", f"file:{tmp_path}/none", "plain"]
    answer = await rig.stub.CheckSecrets(pb.CheckSecretsRequest(secret_refs=refs), timeout=5)
    assert sorted(answer.unresolved) == sorted(["env:UNSET", f"file:{tmp_path}/none", "plain"])
    assert "s3cret" not in str(answer)


async def test_an_unreachable_channel(rig, job) -> None:
    """ERR-1 HLT-8: a refused connection is the channel's fault and surely no submission."""
    fault = await rig.refusal(rig.submit("aurora", job(prompt="x"), base_url="http://127.0.0.1:1/api/v3"))
    assert (fault.code, fault.category, fault.scope, fault.retryable) == ("connect_failed", "supply", "channel", True)


async def test_a_missing_field_is_named(rig, job) -> None:
    """ERR-2: a request without a required field is refused by its pointer."""
    fault = await rig.refusal(rig.submit("aurora", job(prompt="x"), secret_ref=""))
    assert fault.errors[0].pointer == "/channel/secret_ref"
