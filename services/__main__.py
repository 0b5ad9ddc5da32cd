"""All in one process, or some of it: `python -m services [CONTEXT…]`. The only place that knows every house by name."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NoReturn

from libs.host import process
from libs.host.hosted import Builder, Context
from libs.host.placement import START_ORDER
from libs.kernel.world import World


def builder(name: str) -> Builder:
    """How the context of that name is built. It is imported when it is built, so that a process loads what it hosts."""

    def build(env: Mapping[str, str], channels: Any, world: World) -> Context:
        settings = import_module(f"services.{name}.settings").Settings.from_env(env)
        context: Context = import_module(f"services.{name}.compose").build(settings, channels, world)
        return context

    return build


BUILDERS: Mapping[str, Builder] = {name: builder(name) for name in START_ORDER}


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Host the contexts named in the arguments (of the command line, if none are given here) until a signal."""
    process.main(BUILDERS, arguments)


if __name__ == "__main__":
    main()
