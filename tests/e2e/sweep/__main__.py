"""`make sweep`: every effect of every scene, killed before and after; or one place by name."""

import argparse
import asyncio
import signal
import sys
import time
from collections.abc import Iterable

from tests.e2e.sweep.playing import NotReached, Place, Theatre, theatre
from tests.e2e.sweep.scenes import SCENES, Scene

TRIES, REHEARSALS = 3, 2


def main() -> int:
    """Exit code 1 when a promise was broken at any place, or a place could not be reached."""
    parser = argparse.ArgumentParser(prog="sweep", description=__doc__)
    parser.add_argument("--index", help="this place only: its number in the list or its name")
    parser.add_argument("--scene", choices=SCENES, help="the places of this scene only")
    parser.add_argument("--list", action="store_true", help="rehearse each scene and print its places")
    parser.add_argument("--every", type=int, default=1, help="each n-th place only")
    parser.add_argument("--workers", type=int, default=3, help="how many are played at once")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # whoever ends a sweep leaves no process behind
    return asyncio.run(sweep(given))


async def sweep(given: argparse.Namespace) -> int:
    """See `main`."""
    begun = time.monotonic()
    async with theatre() as house:
        places = await chosen(house, given)
        if given.list:
            return 0
        failed = await play_all(house, places, given.workers)
    took_s = time.monotonic() - begun
    sys.stdout.write(f"{len(places)} places killed in {took_s:.0f} s; failed: {' '.join(failed) or 'none'}\n")
    return 1 if failed else 0


async def chosen(house: Theatre, given: argparse.Namespace) -> list[Place]:
    """The places to play: a named one, a numbered one, or each n-th of all or of one scene."""
    if given.index and not given.index.isdigit():
        return [Place.of(given.index)]
    scenes = [SCENES[given.scene]] if given.scene else list(SCENES.values())
    lived = await asyncio.gather(*(rehearsed(house, scene) for scene in scenes))
    every = [Place(scene, at) for scene, places in zip(scenes, lived, strict=True) for at in places]
    if given.list:
        sys.stdout.writelines(f"{number:4} {place}\n" for number, place in enumerate(every, 1))
    return [every[int(given.index) - 1]] if given.index else every[:: given.every]


async def rehearsed(house: Theatre, scene: Scene) -> list[str]:
    """The places that come each time. A tick that happens to look while a step is at work may repeat an effect."""
    first, *others = [await house.play(Place(scene, "")) for _ in range(REHEARSALS)]
    return [at for at in first if all(at in other for other in others)]


async def play_all(house: Theatre, places: Iterable[Place], workers: int) -> list[str]:
    """Play them, some at once; the names of those that failed."""
    room, failed = asyncio.Semaphore(workers), []

    async def one(number: int, place: Place) -> None:
        async with room:
            begun = time.monotonic()
            problem = await tried(house, place)
            verdict = f"FAILED {problem}" if problem else "ok"
            sys.stdout.write(f"{number:4} {place} {verdict} {time.monotonic() - begun:.1f} s\n")
            sys.stdout.flush()
            if problem:
                failed.append(str(place))

    await asyncio.gather(*(one(number, place) for number, place in enumerate(places, 1)))
    return failed


async def tried(house: Theatre, place: Place) -> str:
    """ "" or what went wrong. A place that was not reached, its effect having come in another order, is tried again."""
    for left in reversed(range(TRIES)):
        try:
            await house.play(place)
        except NotReached as error:
            if not left:
                return f"not reached: {error}"
        except AssertionError as error:
            return str(error)
        else:
            return ""
    raise AssertionError("the last try returns")


if __name__ == "__main__":
    sys.exit(main())
