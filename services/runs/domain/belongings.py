"""Which files a node may work on: those that its Run was given, and those that it made (AUTH-1).

Who hands a Run a file proves at the edge that the file is its own, by writing the material itself: an object with its
digest. A digest put together by an expression has been proved by nobody, and equal bytes are one artifact whoever
brought them, so it must be one of the Run's own.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from services.runs.domain.run import Run

MATERIAL = frozenset({"url", "artifact", "base64", "media_type"})
DIGEST = re.compile(r"[0-9a-f]{64}")


def not_its_own(run: Run, value: Any) -> str:
    """The first digest in a value that the Run was neither given nor made; "" if there is none."""
    named = dict.fromkeys(_named(value))
    if not named:
        return ""
    strange = named.keys() - _made(run)
    if strange:
        strange -= _given(run)
    return next((digest for digest in named if digest in strange), "")


def _made(run: Run) -> set[str]:
    results = (result for node in run.nodes.values() for result in node.results.values())
    before = {artifact.sha256 for result in results for artifact in result.artifacts}
    return before | {artifact.sha256 for node in run.nodes.values() for artifact in node.artifacts}


def _given(run: Run) -> set[str]:
    """Of materials as the edge judges them: an object that is one and nothing else, without an expression in it."""
    steered = [taken.data for taken in run.steering] + [one.data for taken in run.steered.values() for one in taken]
    given = (run.production, run.order.input, steered, [node.changes for node in run.nodes.values()])
    return {
        item["artifact"]
        for item in _objects(given)
        if _is_digest(item.get("artifact"))
        and item.keys() <= MATERIAL
        and not any(isinstance(text, str) and "${" in text for text in item.values())
    }


def _named(value: Any) -> Iterator[str]:
    return (item["artifact"] for item in _objects(value) if _is_digest(item.get("artifact")))


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and DIGEST.fullmatch(value) is not None


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        yield value
        for item in value.values():
            yield from _objects(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _objects(item)
