"""Take in the materials of an order: judged, fetched, kept, and named by their digests from then on (AUTH-4).

Everything that is wrong is told at once and by its place. A URL is fetched here, at admission, and not when its turn
has come: signed URLs expire while a Task waits, and every Attempt, on whichever Supply, is to see the bytes that were
judged.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any

from libs.blobs.blob import Blob, Blobs
from libs.faults.fault import Fault
from libs.materials.intake import NotAllowed, Unfit
from services.edge.app.authenticate import Caller
from services.edge.app.reveal import Reveal
from services.edge.domain.json_values import pointer_to
from services.edge.domain.orders import INPUT, Material, with_artifacts
from services.edge.domain.together import together
from services.edge.ports import MaterialIntake

AT_ONCE = 4


class TakeMaterials:
    """The use-case with what it needs."""

    def __init__(self, intake: MaterialIntake, reveal: Reveal, blobs: Blobs) -> None:
        self._intake = intake
        self._reveal = reveal
        self._blobs = blobs

    async def refuse_urls(self, urls: Iterable[tuple[str, str]]) -> None:
        """Fault url_not_allowed naming each (pointer, URL) that others are to call and may not."""
        asked = list(urls)
        distinct = list(dict.fromkeys(url for _, url in asked))
        reasons = dict(zip(distinct, await asyncio.gather(*map(self._intake.refusal, distinct)), strict=True))
        refused = [(pointer, reason) for pointer, url in asked if (reason := reasons[url])]
        if refused:
            raise Fault.invalid(*refused, code="url_not_allowed")

    async def __call__(
        self, caller: Caller, given: dict[str, Any], materials: tuple[Material, ...], root: str = INPUT
    ) -> dict[str, Any]:
        """The input, or what stands at `root`, with every material kept and named by its digest, readable by the
        caller's tenant.

        Faults: `validation_failed` for an artifact that is not there or base64 that is none; `url_not_allowed`;
        `material_unreachable` for what cannot be had or is not what its field takes. All of them are told as one, which
        names every field.
        """
        faults: list[Fault] = []
        kept = await self._artifacts(caller, materials, faults)
        contents = _contents(materials, faults)
        try:
            await self.refuse_urls((material.url_pointer, material.url) for material in materials if material.passed_on)
        except Fault as fault:
            faults.append(fault)
        arrivals: dict[tuple[str, str], asyncio.Task[Blob]] = {}
        turn = asyncio.Semaphore(AT_ONCE)
        try:
            work = [
                (material, self._arrival(material, kept, contents, arrivals, turn))
                for material in materials
                if not material.passed_on
                and (material.url or material.artifact in kept or material.pointer in contents)
            ]
            found = await asyncio.gather(*(task for _, task in work), return_exceptions=True)
        finally:
            for task in arrivals.values():
                task.cancel()
        faults += _wrong_of([(material, end) for (material, _), end in zip(work, found, strict=True)])
        if faults:
            raise together(faults)
        digests = {material.pointer: end.sha256 for (material, _), end in zip(work, found, strict=True)
                   if isinstance(end, Blob)}  # fmt: skip
        await self._reveal.grant(caller.tenant, digests.values())
        return with_artifacts(given, digests, root) if digests else given

    def _arrival(
        self,
        material: Material,
        kept: dict[str, Blob],
        contents: dict[str, bytes],
        arrivals: dict[tuple[str, str], asyncio.Task[Blob]],
        turn: asyncio.Semaphore,
    ) -> asyncio.Task[Blob]:
        """The work on one material; equal ones of one order are one work."""

        work: Callable[[], Awaitable[Blob]]
        if material.artifact:
            work = partial(self._checked, kept[material.artifact], material.family)
        elif material.base64:
            work = partial(self._intake.from_bytes, contents[material.pointer], material.family)
        else:
            work = partial(self._intake.from_url, material.url, material.family)
        source = material.artifact or material.url or material.pointer
        if (source, material.family) not in arrivals:
            arrivals[source, material.family] = asyncio.create_task(_in_turn(turn, work))
        return arrivals[source, material.family]

    async def _checked(self, blob: Blob, family: str) -> Blob:
        await self._intake.check(blob, family)
        return blob

    async def _artifacts(self, caller: Caller, materials: Iterable[Material], faults: list[Fault]) -> dict[str, Blob]:
        """The artifacts that are named, by digest. One that is not there for this caller is not there at all."""
        found: dict[str, Blob] = {}
        for material in materials:
            if not material.artifact or material.artifact in found:
                continue
            blob = await self._usable(caller, material.artifact)
            if blob is None:
                faults.append(Fault.invalid((pointer_to(material.pointer, "artifact"), "no such artifact")))
            else:
                found[material.artifact] = blob
        return found

    async def _usable(self, caller: Caller, artifact: str) -> Blob | None:
        """It, if it is there for this caller. Operators may read everything, so for them it must be looked for."""
        try:
            return await self._blobs.stat(artifact) if await self._reveal.may_read(caller, artifact) else None
        except Fault as fault:
            if fault.code == "not_found":
                return None
            raise


async def _in_turn(turn: asyncio.Semaphore, work: Callable[[], Awaitable[Blob]]) -> Blob:
    async with turn:
        return await work()


def _contents(materials: Iterable[Material], faults: list[Fault]) -> dict[str, bytes]:
    """The bytes of what came as base64, by pointer."""
    contents: dict[str, bytes] = {}
    for material in materials:
        if material.base64:
            try:
                contents[material.pointer] = material.content()
            except Fault as fault:
                faults.append(fault)
    return contents


def _wrong_of(ends: list[tuple[Material, Blob | BaseException]]) -> list[Fault]:
    """The faults of materials; what is none of theirs is raised as it is."""
    faults: list[Fault] = []
    for material, end in ends:
        if isinstance(end, NotAllowed):
            faults.append(Fault.invalid((_place(material), str(end)), code="url_not_allowed"))
        elif isinstance(end, Unfit):
            faults.append(Fault.invalid((_place(material), str(end)), code="material_unreachable"))
        elif isinstance(end, BaseException):
            raise end
    return faults


def _place(material: Material) -> str:
    source = "url" if material.url else "artifact" if material.artifact else "base64"
    return pointer_to(material.pointer, source)
