"""Words in a prompt that make a provider refuse, so that every refusal can be had on purpose.

| marker | effect |
|---|---|
| `[moderated]`, `forbidden:nsfw` | refused at submission as sensitive input |
| `[moderated-late]` | accepted, then failed as sensitive output |
| `[real-person]` | refused at submission unless the account allows real persons |
| `[real-person-late]` | accepted, then failed for privacy unless the account allows real persons |
"""

from __future__ import annotations

from services.studio.domain.refusals import Reason

EARLY_CONTENT = ("[moderated]", "forbidden:nsfw")
LATE_CONTENT = "[moderated-late]"
EARLY_PERSON = "[real-person]"
LATE_PERSON = "[real-person-late]"


def early(text: str, real_person: str) -> Reason | None:
    """Why a provider refuses this text at the door, or None."""
    lowered = text.lower()
    if any(marker in lowered for marker in EARLY_CONTENT):
        return Reason.CONTENT_INPUT
    if EARLY_PERSON in lowered and real_person != "allowed":
        return Reason.PERSON_INPUT
    return None


def late(text: str, real_person: str) -> Reason | None:
    """Why a provider fails the accepted job at its end, or None."""
    lowered = text.lower()
    if LATE_CONTENT in lowered:
        return Reason.CONTENT_OUTPUT
    if LATE_PERSON in lowered and real_person != "allowed":
        return Reason.PERSON_OUTPUT
    return None
