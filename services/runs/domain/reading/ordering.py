"""In which order nodes come, and which of them need themselves."""

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush

SHOWN = 12


def in_order(needs: Mapping[str, Sequence[str]]) -> tuple[list[str], list[list[str]]]:
    """(Every node after all that it needs, otherwise in the given order; the circles, each as `a, b` for a needs b
    needs a). Nodes of a circle come in where it was found; every need must be a key.
    """
    place = {name: index for index, name in enumerate(needs)}
    names = list(needs)
    missing = {name: set(needs[name]) for name in names}
    dependants: dict[str, list[str]] = {name: [] for name in names}
    for name, wanted in missing.items():
        for other in wanted:
            dependants[other].append(name)
    ready = [place[name] for name in names if not missing[name]]
    heapify(ready)
    order: list[str] = []
    circles: list[list[str]] = []
    done: set[str] = set()
    while len(done) < len(names):
        if not ready:
            circle = _circle(next(name for name in names if name not in done), missing)
            circles.append(circle)
            for name in circle:
                missing[name].clear()
            ready = [place[name] for name in circle]
            heapify(ready)
        name = names[heappop(ready)]
        done.add(name)
        order.append(name)
        for other in dependants[name]:
            if name in missing[other]:
                missing[other].discard(name)
                if not missing[other]:
                    heappush(ready, place[other])
    return order, circles


def told(circle: Sequence[str]) -> str:
    """A circle in words: `a -> b -> a`."""
    names = [*circle, circle[0]]
    if len(names) > SHOWN:
        names = [*names[: SHOWN - 1], f"… {len(names) - SHOWN} more …", names[-1]]
    return " -> ".join(names)


def _circle(start: str, missing: Mapping[str, set[str]]) -> list[str]:
    """Where every node still needs one, going from need to need ends in a circle."""
    path: dict[str, None] = {}
    name = start
    while name not in path:
        path[name] = None
        name = min(missing[name])
    walked = list(path)
    return walked[walked.index(name) :]
