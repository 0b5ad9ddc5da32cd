"""Production documents drawn from a seed: gates, maps with canaries, checks, tolerance, budgets that are often tight.

Durations are the world's: a deadline of people passes while they still think.
"""

import random
from collections.abc import Mapping
from typing import Any

from tests.simulation.offers import MODEL, SECONDS

CLASSES = ("dialogue", "action")
STYLE, PACE = "style", "pace"
"""Kinds of steering: the maps take the one, the film the other; nobody takes `noise`."""
KINDS = (STYLE, PACE, "noise")


def drawn_production(rng: random.Random, name: str, stretch: float) -> dict[str, Any]:
    """A sound document."""
    deadline = f"{max(1, round(rng.choice((10, 60, 400)) * stretch))}s"
    person: Mapping[str, Any] = {"deadline": deadline, "deputy": "lead"}
    nodes: list[dict[str, Any]] = []
    needs: list[str] = []
    if rng.random() < 0.4:
        nodes.append({"id": "approved", "kind": "gate", **person})
        needs = ["approved"]
    nodes.append({"id": "shots", "needs": needs, **_map(rng)})
    needs = ["shots"]
    if rng.random() < 0.6:
        nodes.append({"id": "looked", "kind": "check", "needs": needs, "checks": ["decodes", {"min_size": "320x180"}]})
        needs = ["looked"]
    film = _clip(rng, "all of it", PACE)
    film["input"]["reference_videos"] = "${shots.artifacts}"
    nodes.append({"id": "film", "needs": needs, **film})
    if rng.random() < 0.5:
        nodes.append({"id": "release", "kind": "gate", "needs": ["film"], **person})
    document: dict[str, Any] = {"production": name, "budget": _budget(rng), "nodes": nodes}
    if rng.random() < 0.1:
        document["deadline"] = f"{max(1, round(rng.uniform(30.0, 300.0) * stretch))}s"
    if rng.random() < 0.2:
        document["concurrency"] = rng.choice((1, 2))
    return document


def _budget(rng: random.Random) -> dict[str, Any]:
    """Of nothing but one attempt up to more than it all can cost."""
    budget: dict[str, Any] = {"currency": "CNY", "cost": rng.choice(("8.00", "25.00", "60.00", "1000.00"))}
    if rng.random() < 0.3:
        budget["soft"] = "7.00"
    return budget


def _map(rng: random.Random) -> dict[str, Any]:
    classes = CLASSES[: rng.choice((1, 2))]
    count = rng.choice((1, 2, 3))
    over = [
        {"id": f"S{number}", "shot_class": rng.choice(classes), "prompt": f"shot {number}"}
        for number in range(1, count + 1)
    ]
    shots: dict[str, Any] = {"kind": "map", "over": over, "node": _clip(rng, "${item.prompt}", STYLE)}
    if rng.random() < 0.7:
        shots["canary"] = {"per": "shot_class", "count": 1, "release": rng.choice(("auto", "auto", "gate"))}
    if rng.random() < 0.5:
        shots["tolerate"] = {"failures": rng.choice((1, 2))}
    return shots


def _clip(rng: random.Random, prompt: str, steering: str) -> dict[str, Any]:
    clip: dict[str, Any] = {
        "kind": "generate",
        "model": MODEL,
        "input": {"prompt": prompt, "duration_s": SECONDS},
        "budget": {"attempts": rng.choice((1, 2, 4))},
    }
    if rng.random() < 0.3:
        clip["budget"]["cost"] = rng.choice(("6.00", "20.00"))
    if rng.random() < 0.7:
        clip["consumes_steering"] = {steering: "input.prompt"}
    if rng.random() < 0.3:
        clip["checks"] = [{"min_size": "320x180"}]
    return clip
