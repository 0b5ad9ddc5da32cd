"""Conditional and partial reads of something that never changes (RFC 9110, sections 13 and 14)."""

import re

from libs.faults.fault import Fault

ONE_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)


def byte_range(header: str | None, size: int) -> tuple[int, int] | None:
    """(start, end), half open, or None for everything.

    Several ranges and what cannot be read are answered with everything, as the RFC allows. Fault range_not_satisfiable
    for a range that lies outside.
    """
    found = ONE_RANGE.fullmatch(header.strip().replace(" ", "")) if header else None
    if found is None or (not found[1] and not found[2]):
        return None
    if not found[1]:
        start, end = max(0, size - int(found[2])), size
        if not int(found[2]) or not size:
            raise outside(size)
        return start, end
    start = int(found[1])
    end = min(int(found[2]) + 1, size) if found[2] else size
    if found[2] and int(found[2]) < start:
        return None
    if start >= size:
        raise outside(size)
    return start, end


def outside(size: int) -> Fault:
    """The Fault for a range that begins outside; `size` is told to the caller."""
    return Fault.of("range_not_satisfiable", f"the artifact has {size} bytes", metadata={"size": str(size)})


def names(header: str | None, etag: str) -> bool:
    """Whether `If-None-Match` names that entity tag (weak comparison)."""
    if not header:
        return False
    tags = [tag.strip().removeprefix("W/") for tag in header.split(",")]
    return "*" in tags or etag in tags


def still_wanted(if_range: str | None, etag: str) -> bool:
    """Whether the range may be served: no `If-Range`, or one that names this entity."""
    return if_range is None or if_range.strip() == etag
