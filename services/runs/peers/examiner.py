"""What was made, looked at where its bytes are: measured by libs/materials, read by a public model through routing.

Laws of this file:
- every look reads the bytes and compares their digest: a copy that differs is damaged, whatever it shows;
- few files are looked at at once, because decoding takes a processor whole;
- what was measured is remembered by its digest, which never means anything else; what was read, by digest and model.
"""

import asyncio
import hashlib
import json
import tempfile
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from libs.blobs.blob import Blobs, CorruptBlob
from libs.blobs.disk import on_disk
from libs.faults.fault import Fault
from libs.kernel.ids import Ids
from libs.kernel.money import Money
from libs.materials.examining import Examined, examine
from libs.materials.likeness import fingerprint
from libs.materials.probing import Unreadable
from libs.rpc.faulting import faulting
from libs.rpc.values import money_from_proto
from pointsman.routing.v1 import routing_service_pb2 as pb
from pointsman.routing.v1.routing_service_pb2_grpc import RoutingServiceStub
from services.runs.domain.judging import Facts
from services.runs.domain.run import Artifact

AT_ONCE = 2
REMEMBERED = 10_000
READING_TIMEOUT_S = 120.0
TEXTS = ("text/", "application/json", "application/x-subrip")
"""Media types of what has neither pixels nor seconds and is sound if it is UTF-8."""


class BlobExaminer:
    """Implements `ports.Examiner` over a store of blobs and routing."""

    def __init__(self, blobs: Blobs, routing: Any, ids: Ids, at_once: int = AT_ONCE) -> None:
        self._blobs = blobs
        self._stub: Any = RoutingServiceStub(routing)
        self._ids = ids
        self._turns = asyncio.Semaphore(at_once)
        self._seen: OrderedDict[str, Facts] = OrderedDict()
        self._read: OrderedDict[tuple[str, str], str] = OrderedDict()

    async def examine(self, tenant: str, artifact: Artifact, readers: Collection[str] = ()) -> Facts:
        """See the port."""
        async with self._turns:
            facts = await self._measured(artifact)
        if facts.unsound or not facts.fingerprint:
            return facts
        words: dict[str, str] = {}
        spent: list[Money] = []
        for model in sorted(readers):
            words[model] = await self._words(tenant, artifact.sha256, model, spent)
        return replace(facts, words=words, spent=tuple(spent))

    async def _measured(self, artifact: Artifact) -> Facts:
        facts = Facts(artifact.sha256, artifact.media_type or await self._type_of(artifact.sha256))
        with tempfile.TemporaryDirectory(prefix="pointsman-examined-") as folder:
            path = Path(folder) / "artifact"
            try:
                digest = await self._copy(artifact.sha256, path)
            except Fault as fault:
                if fault.code != "not_found":
                    raise
                return replace(facts, unsound="is not in the store")
            except CorruptBlob:
                digest = ""
            facts = replace(facts, size_bytes=path.stat().st_size)
            if digest != artifact.sha256:
                return replace(facts, unsound="is damaged: its bytes are not those that its digest names")
            if facts.size_bytes == 0:
                return replace(facts, unsound="is empty")
            if artifact.sha256 not in self._seen:
                try:
                    _remember(self._seen, artifact.sha256, await _facts(facts, path))
                except Unreadable as error:
                    return replace(facts, unsound=str(error))
            return self._seen[artifact.sha256]

    async def _type_of(self, sha256: str) -> str:
        """Of a file that nobody here has made; "" of one that is not there, which looking at it tells."""
        try:
            return (await self._blobs.stat(sha256)).media_type
        except Fault as fault:
            if fault.code != "not_found":
                raise
            return ""

    async def _copy(self, sha256: str, path: Path) -> str:
        """Bring the bytes to a file; answers their digest."""
        digest = hashlib.sha256()
        with path.open("xb") as file:
            async for chunk in self._blobs.open(sha256):
                digest.update(chunk)
                await on_disk(file.write, chunk)
        return digest.hexdigest()

    @faulting
    async def _words(self, tenant: str, sha256: str, model: str, spent: list[Money]) -> str:
        """The text that a model reads in a picture; what that cost is put into `spent`."""
        key = (sha256, model)
        if key not in self._read:
            asked = {"image": {"artifact": sha256}, "task": "recognize_text"}
            request = pb.InvokeRequest(
                call_id=self._ids.ulid(), tenant=tenant, model=model, kind="ocr", input=json.dumps(asked).encode()
            )
            reply = await self._stub.Invoke(request, timeout=READING_TIMEOUT_S)
            cost = money_from_proto(reply.call.cost)
            spent += [cost] if cost is not None else []
            _remember(self._read, key, str(json.loads(reply.output).get("text") or ""))
        return self._read[key]


async def _facts(facts: Facts, path: Path) -> Facts:
    if facts.media_type.startswith(TEXTS):
        await on_disk(_utf8, path)
        return facts
    seen = await examine(path, decoding=True)
    measures = seen.measures
    looks = await asyncio.to_thread(fingerprint, path) if measures.media_type.startswith("image/") else ""
    return replace(
        facts,
        media_type=measures.media_type,
        width=measures.width,
        height=measures.height,
        duration_s=measures.duration_s,
        streams=_streams(seen),
        fingerprint=looks,
    )


def _streams(seen: Examined) -> frozenset[str]:
    held = {"video": seen.streams.video, "audio": seen.streams.audio, "subtitle": seen.streams.subtitles}
    return frozenset(name for name, present in held.items() if present)


def _utf8(path: Path) -> None:
    try:
        path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise Unreadable("is no text in UTF-8") from error


def _remember(kept: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    kept[key] = value
    while len(kept) > REMEMBERED:
        kept.popitem(last=False)
