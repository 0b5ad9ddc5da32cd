"""Results into the store. Bytes are checked for what they are before they are called a result."""

from collections.abc import AsyncIterator
from dataclasses import replace

from libs.faults.fault import Fault
from libs.kernel.world import World
from libs.materials.sniffing import SNIFF_BYTES
from libs.telemetry import metrics, names
from services.provider_adapter.app.errands import Errands
from services.provider_adapter.domain.exchange import ExchangeBroken
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.measures import Measuring
from services.provider_adapter.domain.media import settled_type
from services.provider_adapter.domain.outcomes import WORDS, Made, Media, Result, Stored
from services.provider_adapter.ports import Download, MediaStore, Target, Transport
from services.provider_adapter.settings import Settings

_WORTH_ANOTHER_TRY = frozenset({408, 425, 429, 500, 502, 503, 504})


class NotFetched(Exception):
    """A result could not be fetched now; a later try, or a newer URL, may succeed."""


class Gone(NotFetched):
    """The URL is no longer good: only a new answer of the provider can help."""


class NoMedia(Exception):
    """What the provider calls a result is not one: empty, or of another family."""


class MediaWorks:
    """Fetches, checks and keeps results."""

    def __init__(self, transport: Transport, store: MediaStore, world: World, settings: Settings) -> None:
        self._transport = transport
        self._store = store
        self._world = world
        self._settings = settings
        self._errands: Errands[Stored] = Errands()

    async def kept(self, made: Made, job: Job, endpoint: Endpoint, door: Target | None = None) -> Result:
        """Everything that a job made, stored; `door` opens what is keyed. Raises NotFetched or NoMedia."""
        artifacts = [
            await self._keep(media, f"{endpoint.channel_id} {job.attempt_id} {index}", door)
            for index, media in enumerate(made.media)
        ]
        size = sum(artifact.size_bytes for artifact in artifacts)
        labels = {"adapter": endpoint.adapter, "channel": endpoint.channel_id}
        metrics.PROCESS.counter(names.PROVIDER_BYTES, **labels).inc(size)
        return Result(tuple(artifacts), made.output, made.usage, made.reported_cost)

    async def stop(self) -> None:
        """Give up fetches that nobody waits for any more."""
        await self._errands.stop()

    async def _keep(self, media: Media, key: str, door: Target | None) -> Stored:
        if media.family == WORDS:
            return await self._store.keep(_once(media.data), media.media_type, self._settings.media_bytes)
        if media.data:
            return await self._store_stream(_once(media.data), media.media_type, media.family)
        return await self._errands.run(key, lambda: self._brought(media, door if media.keyed else None))

    async def _brought(self, media: Media, door: Target | None) -> Stored:
        for number in range(1, self._settings.media_tries + 1):
            try:
                return await self._fetch(media, door)
            except Gone:
                raise
            except NotFetched:
                if number == self._settings.media_tries:
                    raise
                pause = self._settings.media_backoff_s * 2 ** (number - 1)
                await self._world.clock.sleep(pause * self._world.rng.uniform(0.5, 1.0))
        raise NotFetched

    async def _fetch(self, media: Media, door: Target | None) -> Stored:
        try:
            async with self._transport.fetch(media.url, door) as download:
                if download.status != 200:
                    if download.status in _WORTH_ANOTHER_TRY:
                        raise NotFetched(f"status {download.status}")
                    raise Gone(f"status {download.status}")
                return await self._take(download, media.family)
        except ExchangeBroken as error:
            raise NotFetched(error.how.value) from None

    async def _take(self, download: Download, family: str) -> Stored:
        stored = await self._store_stream(download.chunks, download.media_type, family)
        if download.length is not None and stored.size_bytes != download.length:
            raise NotFetched(f"{stored.size_bytes} of {download.length} bytes came")
        return stored

    async def _store_stream(self, chunks: AsyncIterator[bytes], claimed: str, family: str) -> Stored:
        head = b""
        async for chunk in chunks:
            head += chunk
            if len(head) >= SNIFF_BYTES:
                break
        if not head:
            raise NoMedia("the result is empty")
        media_type = settled_type(head[:SNIFF_BYTES], claimed, family)
        if not media_type:
            raise NoMedia(f"the result is no {family}")
        try:
            measuring = Measuring()
            passing = _measured(_after(head, chunks), measuring)
            stored = await self._store.keep(passing, media_type, self._settings.media_bytes)
            return replace(stored, measures=measuring.measures())
        except Fault as fault:
            if fault.code != "payload_too_large":
                raise
            raise NoMedia(f"the result is larger than {self._settings.media_bytes} bytes") from fault


async def _measured(chunks: AsyncIterator[bytes], measuring: Measuring) -> AsyncIterator[bytes]:
    async for chunk in chunks:
        measuring.feed(chunk)
        yield chunk


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def _after(head: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield head
    async for chunk in rest:
        yield chunk
