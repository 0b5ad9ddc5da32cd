"""What a receiver of callbacks believes."""

import json

import pytest

from libs.client.callbacks import CallbackRefused, verify_callback
from libs.kernel import webhooks

OLD, NEW = (webhooks.spell_secret(bytes([number]) * 32) for number in (1, 2))
BODY = json.dumps({"type": "run.completed", "timestamp": "2026-01-01T12:00:00Z", "data": {"id": "r1"}}).encode()
SENT_S = 1_767_268_800


def signed(*secrets: str, body: bytes = BODY, sent_s: int = SENT_S) -> dict[str, str]:
    """The headers with which a message comes."""
    return webhooks.signed_headers([webhooks.read_secret(text) for text in secrets], "m1", sent_s, body)


def test_the_standard_is_kept() -> None:
    """AUTH-5: the example of Standard Webhooks is signed as its own libraries sign it."""
    secret = webhooks.read_secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    made = webhooks.signature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert made == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_message_is_verified() -> None:
    """AUTH-5: with its secret, whatever the case of the headers, a message is read; the id tells repeats apart."""
    headers = {name.title(): value for name, value in signed(NEW).items()}
    callback = verify_callback(headers, BODY, NEW, now=SENT_S + 299)
    assert (callback.id, callback.type, callback.data) == ("m1", "run.completed", {"id": "r1"})


@pytest.mark.parametrize("known", [[OLD], [NEW], [OLD, NEW]])
def test_secrets_change_without_a_gap(known: list[str]) -> None:
    """AUTH-5: while two secrets are in force, whoever knows either can verify."""
    assert verify_callback(signed(NEW, OLD), BODY, known, now=SENT_S).id == "m1"


@pytest.mark.parametrize(
    ("headers", "body", "now", "words"),
    [
        (signed(OLD), BODY, SENT_S, "no signature is by a secret of yours"),
        (signed(NEW), BODY + b" ", SENT_S, "no signature"),
        ({**signed(NEW), "webhook-id": "m2"}, BODY, SENT_S, "no signature"),
        ({**signed(NEW), "webhook-timestamp": str(SENT_S + 1)}, BODY, SENT_S, "no signature"),
        ({**signed(NEW), "webhook-signature": "v2,aa v1,é"}, BODY, SENT_S, "no signature"),
        (signed(NEW), BODY, SENT_S + 301, "more than 300 s ago"),
        (signed(NEW), BODY, SENT_S - 301, "from the future"),
        ({}, BODY, SENT_S, "not all there"),
        ({**signed(NEW), "webhook-timestamp": "soon"}, BODY, SENT_S, "not all there"),
        (signed(NEW, body=b"{}"), b"{}", SENT_S, "none of ours"),
    ],
)
def test_what_is_refused(headers: dict[str, str], body: bytes, now: float, words: str) -> None:
    """AUTH-5: a message that is changed, old, from the future or signed by somebody else is refused with the reason."""
    with pytest.raises(CallbackRefused, match=words):
        verify_callback(headers, body, NEW, now=now)


@pytest.mark.parametrize("text", ["nonsense", "whsec_", "whsec_c2hvcnQ=", ""])
def test_a_secret_that_is_none(text: str) -> None:
    """AUTH-5: a wrong secret is a mistake of the receiver, said as such and not as a forged message."""
    with pytest.raises(ValueError, match="a webhook secret"):
        verify_callback(signed(NEW), BODY, text, now=SENT_S)
