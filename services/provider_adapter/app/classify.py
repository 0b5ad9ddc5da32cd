"""Classifies a reply by the code path of live traffic."""

from collections.abc import Mapping

from libs.faults.fault import Fault
from libs.kernel.clock import Clock
from services.provider_adapter.adapters.registry import ADAPTERS, GENERIC
from services.provider_adapter.app.hiding import hidden
from services.provider_adapter.domain.adapter import Adapter
from services.provider_adapter.domain.exchange import Phase, Reply
from services.provider_adapter.domain.judgement import judge

SYNCHRONOUS_APIS = frozenset({"chat", "embedding", "image", "ocr", "speech"})
_PHASES = {"": Phase.SUBMIT, "submit": Phase.SUBMIT, "poll": Phase.POLL, "stream": Phase.STREAM}


class ClassifyFailure:
    """Judges what somebody else heard."""

    def __init__(self, clock: Clock, adapters: Mapping[str, Adapter] = ADAPTERS) -> None:
        self._clock = clock
        self._adapters = adapters

    def __call__(self, adapter: str, api: str, phase: str, reply: Reply) -> Fault:
        """The fault, its evidence in the metadata. Fault `validation_failed` for an unknown adapter or phase."""
        known = self._adapters.get(adapter)
        if known is None and adapter not in ("", "generic"):
            raise Fault.invalid(("/adapter", f"no adapter '{adapter[:80]}'; use a name of ListAdapters, or generic"))
        if phase not in _PHASES:
            raise Fault.invalid(("/phase", "must be submit, poll or stream"))
        table = known.table if known is not None else GENERIC
        fault = judge(reply, _PHASES[phase], table, self._clock.now(), synchronous=api in SYNCHRONOUS_APIS)
        return hidden(fault, {})
