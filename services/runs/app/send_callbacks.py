"""The tick that sends what is due to the URLs that Runs have named.

A claim is a lease: whoever claims a message has `LEASE_S` to send it and to record how that went, after which it is due
again. A process that dies in between leaves a message that comes twice, under one id (at least once, AUTH-5).
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

from libs.faults.fault import Fault
from libs.kernel import webhooks
from libs.kernel.world import World
from services.runs.domain.callbacks import SECRETS_IN_FORCE, Callback, after_sending
from services.runs.ports import Callbacks, Random, Receivers, WebhookSecrets

LEASE_S = 60.0
AT_ONCE = 64
OF_ONE_TENANT = 8
CLAIM = 8
STOP_S = 20.0

log = logging.getLogger(__name__)


class SendCallbacks:
    """The sender of one process."""

    def __init__(
        self, callbacks: Callbacks, secrets: WebhookSecrets, receivers: Receivers, world: World, random: Random
    ) -> None:
        self._callbacks = callbacks
        self._secrets = secrets
        self._receivers = receivers
        self._world = world
        self._random = random
        self._sending: dict[asyncio.Task[None], str] = {}

    async def tick(self) -> bool:
        """Begin to send what is due; True when there may be more. A receiver that is slow holds up its own tenant."""
        if len(self._sending) > AT_ONCE - CLAIM:
            return False
        at_work = Counter(self._sending.values())
        busy = [tenant for tenant, count in at_work.items() if count >= OF_ONE_TENANT]
        now = self._world.clock.now()
        claimed = await self._callbacks.claim(now, now + timedelta(seconds=LEASE_S), busy, CLAIM)
        for callback in claimed:
            task = asyncio.create_task(self.send(callback))
            self._sending[task] = callback.tenant
            task.add_done_callback(self._sent)
        return len(claimed) == CLAIM

    async def send(self, callback: Callback) -> None:
        """Send a message that was claimed, and record how that went."""
        secrets = await self._secrets_of(callback.tenant)
        body = callback.body.encode()
        headers = webhooks.signed_headers(secrets, callback.id, int(self._world.outside().timestamp()), body)
        sent = await self._receivers.send(callback.url, body, headers)
        now = self._world.clock.now()
        await self._callbacks.record(after_sending(callback, sent, now, self._world.rng.random()))

    async def stop(self) -> None:
        """Let what is being sent end, within bounds."""
        if self._sending:
            _, late = await asyncio.wait(self._sending, timeout=STOP_S)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _secrets_of(self, tenant: str) -> Sequence[bytes]:
        """The newest first. Every message is signed: a tenant without a secret gets one that nobody knows."""
        known = await self._secrets.of(tenant, SECRETS_IN_FORCE)
        if not known:
            known = [await rotate_secret(self._secrets, self._world, self._random, tenant)]
        return [webhooks.read_secret(text) for text in known]

    def _sent(self, task: asyncio.Task[None]) -> None:
        del self._sending[task]
        if not task.cancelled() and (error := task.exception()) is not None:  # it is due again when its lease is over
            log.warning("a callback was not sent, or not recorded", exc_info=error)


async def rotate_secret(secrets: WebhookSecrets, world: World, random: Random, tenant: str) -> str:
    """A new secret of the tenant, as it is shown this once. Fault validation_failed without a tenant."""
    if not tenant:
        raise Fault.invalid(("/tenant", "is required"))
    text = webhooks.spell_secret(random(webhooks.SECRET_BYTES))
    await secrets.add(tenant, world.ids.ulid(), text, world.clock.now())
    return text
