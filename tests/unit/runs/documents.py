"""Production documents for tests, and where a pointer leads."""

import copy
from typing import Any

EPISODE: dict[str, Any] = {
    "production": "episode-001",
    "budget": {"currency": "CNY", "cost": "200.00", "soft": "150.00", "review_minutes": 120},
    "inputs": {"title": "Dawn", "shots": [{"id": "A", "prompt": "sea"}, {"prompt": "sky"}]},
    "nodes": [
        {"id": "approved", "kind": "gate", "subject": {"title": "${inputs.title}"}, "deadline": "4h", "deputy": "lead"},
        {
            "id": "keyframes",
            "kind": "map",
            "over": [
                {"id": "S01", "shot_class": "dialogue", "prompt": "a quay"},
                {"id": "S02", "shot_class": "action", "prompt": "a chase", "ref": ["one", "two"]},
            ],
            "canary": {"per": "shot_class", "count": 1, "release": "auto"},
            "tolerate": {"failures": 2},
            "node": {
                "kind": "generate",
                "model": "keyframe-image",
                "input": {"prompt": "${item.prompt}, ${inputs.title}", "size": "1280x720"},
                "budget": {"attempts": 4, "cost": "2.00", "wall_time": "30m"},
                "consumes_steering": {"style": "input.prompt"},
                "checks": [{"min_size": "1280x720"}],
            },
            "needs": ["approved"],
        },
        {"id": "qc", "kind": "check", "needs": ["keyframes"], "checks": ["decodes", {"min_size": "1280x720"}]},
        {
            "id": "motion",
            "kind": "map",
            "over": "${keyframes.items}",
            "node": {
                "kind": "generate",
                "model": "shot-motion",
                "input": {"first_frame": "${item.artifact}", "duration_s": 4},
                "checks": [{"duration": {"seconds": 4}}, {"similar_to": "${item.artifact}"}],
            },
            "needs": ["qc"],
        },
        {
            "id": "assembly",
            "kind": "generate",
            "model": "assembly-edit",
            "input": {"clips": "${motion.artifacts}"},
            "compensation": "invalidate_artifact",
        },
        {"id": "release", "kind": "gate", "needs": ["assembly"], "rank": "release"},
    ],
}


def episode() -> dict[str, Any]:
    """A sound document, for a test to break."""
    return copy.deepcopy(EPISODE)


def put(document: Any, pointer: str, value: Any) -> Any:
    """The document with a value at a pointer below it."""
    *way, last = pointer.split("/")[1:]
    at = document
    for name in way:
        at = at[int(name)] if isinstance(at, list) else at[name]
    if isinstance(at, list):
        at[int(last)] = value
    else:
        at[last] = value
    return document


def leads_somewhere(document: Any, pointer: str) -> bool:
    """Whether a pointer of a fault is a value of the body, or a key that an object of it lacks."""
    at: Any = {"production": document}
    names = [name.replace("~1", "/").replace("~0", "~") for name in pointer.split("/")[1:]]
    for index, name in enumerate(names):
        if isinstance(at, dict) and name in at:
            at = at[name]
        elif isinstance(at, dict):
            return index == len(names) - 1
        elif isinstance(at, list) and name.isdecimal() and int(name) < len(at):
            at = at[int(name)]
        else:
            return False
    return True
