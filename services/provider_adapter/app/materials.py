"""Materials of a job, brought into the form that its dialect takes.

An input that came through the edge names artifacts alone. What came another way (callers over gRPC) may still name URLs
or hold base64; it is taken in here by the same rule, so that no dialect ever passes on an address that nobody judged.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from libs.blobs.blob import Blob
from libs.faults.fault import Fault
from libs.kernel.clock import Clock
from libs.materials.intake import NotAllowed, Unfit
from services.provider_adapter.domain.adapter import Manifest
from services.provider_adapter.domain.inputs import JsonInput, artifacts_shown, urls_passed_on, with_urls
from services.provider_adapter.domain.job import Content, Job, Place, material_places, with_material
from services.provider_adapter.ports import MaterialIntake, MaterialLinks, MediaStore


class Materials:
    """Takes in what is not ours yet, and reads what is."""

    def __init__(
        self, store: MediaStore, intake: MaterialIntake, links: MaterialLinks | None, clock: Clock, most_bytes: int
    ) -> None:
        self._store = store
        self._intake = intake
        self._links = links
        self._clock = clock
        self._most_bytes = most_bytes

    async def ready(self, job: Job, manifest: Manifest) -> Job:
        """The job with every material an artifact, and with its content as the dialect takes it.

        Faults, each naming the field: `url_not_allowed`, `material_unreachable`, `validation_failed` for base64 that is
        none; `source_not_configured` where the dialect needs a link and none can be made.
        """
        await self._refuse_passed_on(job.input)
        job = await self._shown(job, manifest)
        places = list(material_places(job.input))
        if not places:
            return job
        for place in places:
            sha256 = await self._taken(place)
            if sha256:
                job = replace(job, input=with_material(job.input, place, {"artifact": sha256}))
        contents: dict[str, Content] = {}
        for place in material_places(job.input):
            sha256 = str(place.value.get("artifact") or "")
            if sha256 and sha256 not in contents:
                contents[sha256] = await self._content(sha256, manifest)
        return replace(job, contents=contents) if contents else job

    async def _shown(self, job: Job, manifest: Manifest) -> Job:
        """A chat with what it shows of ours as its dialect takes it. A call comes as text, in which the edge has put
        URLs alone."""
        if job.kind != "chat" or isinstance(job.input, JsonInput):
            return job
        messages = job.input.get("messages")
        contents = {sha256: await self._content(sha256, manifest) for sha256 in set(artifacts_shown(messages))}
        if not contents:
            return job
        urls = {sha256: content.url() for sha256, content in contents.items()}
        return replace(job, input={**job.input, "messages": with_urls(messages, urls)})

    async def _refuse_passed_on(self, given: Mapping[str, Any]) -> None:
        """Fault url_not_allowed naming each URL in a chat that the provider may not be given."""
        asked = list(urls_passed_on(given))
        if not asked:
            return
        distinct = list(dict.fromkeys(url for _, url in asked))
        reasons = dict(zip(distinct, await asyncio.gather(*map(self._intake.refusal, distinct)), strict=True))
        refused = [(pointer, reason) for pointer, url in asked if (reason := reasons[url])]
        if refused:
            raise Fault.invalid(*refused, code="url_not_allowed")

    async def _taken(self, place: Place) -> str:
        """The digest of a material that is not ours yet; "" for one that is."""
        url = place.value.get("url")
        try:
            if isinstance(url, str) and url:
                return (await self._intake.from_url(url, place.family)).sha256
            if "base64" in place.value:
                return (await self._intake.from_bytes(place.decoded(), place.family)).sha256
        except NotAllowed as error:
            raise Fault.invalid((f"{place.pointer}/url", str(error)), code="url_not_allowed") from None
        except Unfit as error:
            raise Fault.invalid((place.pointer, str(error)), code="material_unreachable") from None
        return ""

    async def _content(self, sha256: str, manifest: Manifest) -> Content:
        if manifest.materials == "url" and self._links is not None:
            blob = await self._store.about(sha256)
            return Content(b"", blob.media_type, self._links.url(sha256, self._clock.now()))
        content = await self._store.content(sha256, self._most_bytes)
        family = content.media_type.partition("/")[0]
        if manifest.materials == "url" and family not in manifest.data_urls:
            text = f"adapter '{manifest.name}' takes {family} by link alone; set POINTSMAN_PUBLIC_URL"
            raise Fault.of("source_not_configured", text)
        return content


class ArtifactsOnly:
    """`MaterialIntake` of a context without a way to fetch: only what is kept already is a material."""

    async def refusal(self, url: str) -> str | None:
        """No URL may be used."""
        return "cannot be judged here; send an artifact"

    async def from_url(self, url: str, family: str) -> Blob:
        """Refuses."""
        raise NotAllowed("cannot be fetched here; send an artifact")

    async def from_bytes(self, content: bytes, family: str) -> Blob:
        """Refuses."""
        raise Unfit("cannot be kept here; send an artifact")
