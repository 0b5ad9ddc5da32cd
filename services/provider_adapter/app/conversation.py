"""One exchange with a provider: the key, the time that is left, the sending, the record of it."""

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from math import inf

from libs.faults.fault import Fault
from libs.kernel.clock import Clock
from libs.kernel.deadlines import current_deadline
from libs.telemetry import metrics, names
from libs.telemetry.spans import annotate
from services.provider_adapter.adapters.registry import ADAPTERS
from services.provider_adapter.app.hiding import hidden
from services.provider_adapter.domain.adapter import Adapter
from services.provider_adapter.domain.exchange import ExchangeBroken, HttpRequest, HttpResponse, Phase, Reply
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.judgement import judge
from services.provider_adapter.ports import Secrets, Streaming, Target, Transport

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Line:
    """A channel with its adapter and its key: everything that a conversation needs to know beforehand."""

    endpoint: Endpoint
    adapter: Adapter
    secret: str

    def __repr__(self) -> str:
        return f"Line({self.endpoint.channel_id!r})"


class Conversation:
    """Opens lines and carries exchanges over them."""

    def __init__(
        self, transport: Transport, secrets: Secrets, clock: Clock, margin_s: float,
        adapters: Mapping[str, Adapter] = ADAPTERS,
    ) -> None:  # fmt: skip
        self._transport = transport
        self._secrets = secrets
        self.clock = clock
        self._margin_s = margin_s
        self._adapters = adapters

    def line(self, endpoint: Endpoint, kind: str) -> Line:
        """The line to a channel. Fault `source_not_configured` for an unknown adapter, kind or secret (CAT-6)."""
        adapter = self._adapters.get(endpoint.adapter)
        if adapter is None:
            raise Fault.of("source_not_configured", f"channel '{endpoint.channel_id}': no adapter '{endpoint.adapter}'")
        if kind not in adapter.manifest.kinds:
            raise Fault.of("source_not_configured", f"adapter '{endpoint.adapter}' does not make '{kind}'")
        ways = (adapter.manifest.reconcile_by, *adapter.manifest.reconcile_offers)
        if endpoint.reconcile_by and endpoint.reconcile_by not in ways:
            text = f"channel '{endpoint.channel_id}': adapter '{endpoint.adapter}' has no way '{endpoint.reconcile_by}'"
            raise Fault.of("source_not_configured", text)
        return Line(endpoint, adapter, self._secrets.value(endpoint.secret_ref))

    async def exchange(
        self, line: Line, phase: Phase, request: HttpRequest, job: Job, first_s: float | None = None
    ) -> HttpResponse:
        """Send once; `first_s` limits the wait for the answer to begin. A broken exchange raises its Fault:
        `submission_unknown`, `connect_failed`, `poll_failed` …"""
        begun = self.clock.monotonic()
        outcome = "broken"
        try:
            response = await self._transport.exchange(request, self._target(line, phase, first_s))
            outcome = f"http_{response.status // 100}xx"
            annotate({names.HTTP_STATUS: response.status})
            return response
        except ExchangeBroken as error:
            synchronous = job.kind in line.adapter.manifest.synchronous_kinds
            fault = judge(Reply.broken(error), phase, line.adapter.table, self.clock.now(), synchronous=synchronous)
            outcome = fault.code
            raise fault from None  # the cause names addresses and URLs
        finally:
            self._record(line, phase, outcome, self.clock.monotonic() - begun, job)

    @asynccontextmanager
    async def streaming(self, line: Line, request: HttpRequest, job: Job, first_s: float) -> AsyncIterator[Streaming]:
        """Send once and give the answer to be read. What breaks within the block is the block's to judge; a request
        that got no answer raises its Fault as `exchange` does."""
        begun = self.clock.monotonic()
        outcome = "abandoned"
        try:
            async with self._transport.stream(request, self._target(line, Phase.STREAM, first_s)) as answer:
                yield answer
                outcome = f"http_{answer.status // 100}xx"
        except ExchangeBroken as error:
            fault = self.broken(line, error)
            outcome = fault.code
            raise fault from None
        except Fault as fault:
            outcome = fault.code
            raise
        finally:
            self._record(line, Phase.STREAM, outcome, self.clock.monotonic() - begun, job)

    def broken(self, line: Line, error: ExchangeBroken) -> Fault:
        """What a synchronous exchange that broke proves."""
        return judge(Reply.broken(error), Phase.STREAM, line.adapter.table, self.clock.now(), synchronous=True)

    def time_left(self) -> float:
        """Seconds until the caller's deadline, less the margin for telling the outcome; infinite without one."""
        deadline = current_deadline()
        return inf if deadline is None else deadline - self.clock.monotonic() - self._margin_s

    def _target(self, line: Line, phase: Phase, first_s: float | None = None) -> Target:
        endpoint, auth = line.endpoint, line.adapter.manifest.auth
        allowed = {Phase.SUBMIT: endpoint.timeouts.submit_s, Phase.STREAM: inf}
        total_s = min(allowed.get(phase, endpoint.timeouts.poll_s), self.time_left())
        if total_s <= 0:
            raise Fault.of("deadline_exceeded", "no time is left for a call to the provider; nothing was sent")
        value = auth.prefix + line.secret
        return Target(endpoint.base_url, auth.header, value, endpoint.timeouts.connect_s, total_s, first_s)

    def door(self, line: Line) -> Target:
        """What opens results that only the channel's own key opens. A fetch has its own limits of time."""
        endpoint, auth = line.endpoint, line.adapter.manifest.auth
        limits = endpoint.timeouts
        return Target(endpoint.base_url, auth.header, auth.prefix + line.secret, limits.connect_s, limits.poll_s)

    def _record(self, line: Line, phase: Phase, outcome: str, seconds: float, job: Job) -> None:
        labels = {"adapter": line.endpoint.adapter, "channel": line.endpoint.channel_id, "phase": phase.value}
        metrics.PROCESS.histogram(names.PROVIDER_SECONDS, **labels).observe(seconds)
        metrics.PROCESS.counter(names.PROVIDER_ENDED, **labels, code=outcome).inc()
        spent = {"outcome": outcome, "seconds": round(seconds, 3), "attempt": job.attempt_id}
        log.info("exchange", extra=labels | spent)

    def notice(self, line: Line, phase: Phase, unknown_fields: tuple[str, ...]) -> None:
        """Tell of fields that nobody accounts for. Never fatal."""
        if unknown_fields:
            labels = {"adapter": line.endpoint.adapter, "phase": phase.value}
            metrics.PROCESS.counter(names.PROVIDER_UNKNOWN_FIELDS, **labels).inc(len(unknown_fields))
            log.warning("unknown_field", extra={**labels, "fields": list(unknown_fields)})

    def withheld(self, line: Line, fault: Fault, job: Job) -> Fault:
        """The fault without private words."""
        return hidden(fault, job.input, line.secret)
