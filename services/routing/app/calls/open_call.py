"""A call at the door: who asks, for what, and whether that may be (SEL-1, SEL-2). Nothing here looks at Supplies."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from libs.faults.fault import Fault
from libs.kernel.surrogates import halves_in
from services.routing.app.calls.call_desk import CallDesk
from services.routing.domain.calls.admission import admit_call
from services.routing.domain.calls.sync_settings import LEASE_MARGIN_S, SyncSettings, sync_of
from services.routing.domain.catalog import Catalog, Model
from services.routing.domain.request import Request
from services.routing.domain.trial import model_in, policy_in


class Asked(Struct, frozen=True):
    """What a caller asks for. `input` is a JSON object; `timeout_s` None = as the policy says."""

    call_id: str
    tenant: str
    model: str
    input: bytes
    kind: str = ""
    degradation: str = ""
    billing_mode: str = ""
    timeout_s: float | None = None
    session_id: str = ""
    parent_call_id: str = ""
    skip_cache: bool = False
    streamed: bool = False
    trial: bool = False
    """`model` is the trial of one Supply: our own verification asks, no caller can (CAT-7)."""


class Opened(Struct, frozen=True):
    """An admitted call. `given` is the input as JSON values, `request` holds its digest."""

    asked: Asked
    catalog: Catalog
    model: Model
    sync: SyncSettings
    given: Mapping[str, Any]
    request: Request
    total_s: float


async def open_call(desk: CallDesk, asked: Asked) -> Opened:
    """Faults as `domain.admission.admit`, and `malformed_request` for an input that is no JSON object."""
    given = _read(asked.input)
    known = await desk.catalog.current()
    try:
        return _opened(desk, known, asked, given)
    except Fault:
        newest = await desk.catalog.newest()  # what another replica was told a moment ago holds here too
        if newest.revision == known.revision:
            raise
        return _opened(desk, newest, asked, given)


def _opened(desk: CallDesk, catalog: Catalog, asked: Asked, given: Mapping[str, Any]) -> Opened:
    request = Request(asked.tenant, asked.model, given, asked.degradation, asked.billing_mode)
    tried = model_in(catalog, asked.model) if asked.trial else None
    model, digested = admit_call(catalog, request, asked.kind, asked.streamed, tried)
    policy = policy_in(catalog, model)
    if policy is None:
        raise Fault.of("source_not_configured", f"no policy {model.policy!r} of model {model.id!r}")
    sync = sync_of(policy)
    longest = desk.settings.capacity_ttl_max_s - LEASE_MARGIN_S
    if asked.timeout_s is not None and not 0 < asked.timeout_s <= longest:
        raise Fault.invalid(
            ("/options/timeout", f"must be above 0 and at most {longest:g} s, as long as a slot is held")
        )
    return Opened(asked, catalog, model, sync, given, digested, asked.timeout_s or min(sync.total_timeout_s, longest))


def _read(text: bytes) -> Mapping[str, Any]:
    try:
        given = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        halves = [(f"/input{pointer}", reason) for pointer, reason in halves_in(text)]
        if halves:
            raise Fault.invalid(*halves, code="malformed_request") from error
        raise Fault.of("malformed_request", f"the input is no JSON: {error}") from error
    if not isinstance(given, dict):
        raise Fault.of("malformed_request", "the input must be a JSON object")
    return given
