"""Reads a catalogue file against what it leaves as it is and against the dialects there are."""

from libs.faults.fault import Fault, FieldError
from services.routing.app.catalog_desk import CatalogDesk
from services.routing.domain.calls.sync_settings import incoherences, sync_of
from services.routing.domain.catalog import Catalog, Channel, Policy
from services.routing.domain.catalog_file import CatalogFile, ObjectKind, read_file
from services.routing.domain.catalog_history import Holdings
from services.routing.domain.catalog_links import doubt_faults, link_faults
from services.routing.domain.catalog_text import CatalogTextError
from services.routing.domain.publication import Surroundings

SHOWN = 20
"""Faults in the message; `errors` has them all."""


def declared_catalog(before: Holdings, merge: bool) -> Catalog | None:
    """What names in a file may mean beside its own objects: with `merge`, everything in force."""
    return before.catalog() if merge else None


async def checked_file(desk: CatalogDesk, text: str, kept: Catalog | None) -> tuple[CatalogFile, Surroundings]:
    """The faultless file, and what provider_adapter says of the Channels that will be there.

    Fault `catalog_invalid` with every fault by its path (CAT-1); an adapter that does not exist is one (CAT-6).
    """
    try:
        file = read_file(text)
    except CatalogTextError as error:
        raise refused([("", str(error))]) from error
    around = await desk.around(_channels(file, kept))
    faults = [
        *file.faults,
        *link_faults(file, kept, around.adapters),
        *doubt_faults(file, kept, around.adapters, desk.settle_s),
        *_sync_faults(file, desk.longest_lease_s),
    ]
    if faults:
        raise refused(faults)
    return file, around


def refused(faults: list[tuple[str, str]]) -> Fault:
    """`catalog_invalid`: one line for each fault."""
    lines = [f"{path}: {reason}" if path else reason for path, reason in faults]
    more = [f"and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    errors = tuple(FieldError(path, reason) for path, reason in faults)
    return Fault.of("catalog_invalid", "\n".join([*lines[:SHOWN], *more]), errors=errors)


def _sync_faults(file: CatalogFile, lease_s: float) -> list[tuple[str, str]]:
    """Settings of synchronous calls that cannot be kept to (SYN-12)."""
    found: list[tuple[str, str]] = []
    for declared in file.of_kind(ObjectKind.POLICY):
        if isinstance(declared.value, Policy) and declared.value.sync and not _is_faulty(file, f"{declared.path}.sync"):
            wrong = incoherences(sync_of(declared.value), lease_s)
            found += [(f"{declared.path}.sync.{name}", reason) for name, reason in wrong]
    return found


def _is_faulty(file: CatalogFile, path: str) -> bool:
    return any(place.startswith(path) for place, _ in file.faults)


def _channels(file: CatalogFile, kept: Catalog | None) -> Catalog:
    channels = dict(kept.channels) if kept else {}
    for declared in file.of_kind(ObjectKind.CHANNEL):
        if isinstance(declared.value, Channel):
            channels[declared.id] = declared.value
    return Catalog(revision=0, channels=channels)
