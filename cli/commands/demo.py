"""`pointsman demo`: the production of an episode, and of a burst of clips, on real media, told and checked."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import click

from cli import output
from cli.api import Problem, Unreachable
from cli.context import Session, pass_session
from cli.demo.episode import read_document
from cli.demo.facts import Facts
from cli.demo.play import play
from cli.demo.production import produce
from cli.demo.stage import StageError

T = TypeVar("T")


@click.group(invoke_without_command=True)
@click.pass_context
def demo(context: click.Context) -> None:
    """Make one episode on a stack of its own, and check every fact; exit code 0 only if all hold."""
    if context.invoked_subcommand is None:
        session = context.find_object(Session)
        assert session is not None, "stands behind `pointsman`"
        folder = _folder(session, "demo")
        facts, reel = _told(produce(folder, read_document()), folder)
        output.console.print(f"\nfilm:            [bold]{reel.film}[/]", soft_wrap=True)
        _say_where(folder)
        tell_end(facts, folder)


@demo.command()
@pass_session
def burst(session: Session) -> None:
    """Twenty clips at once while accounts and models fail, and every fact of it; exit code 0 only if all hold."""
    folder = _folder(session, "demo-burst")
    facts = _told(play(folder), folder)
    output.console.print()
    _say_where(folder)
    tell_end(facts, folder)


def _folder(session: Session, name: str) -> Path:
    return (session.data / name).absolute()


def _told(story: Coroutine[Any, Any, T], folder: Path) -> T:
    """Play the story; one that breaks off ends the command."""
    try:
        return asyncio.run(story)
    except StageError as error:
        output.fail(str(error), output.REFUSED)
    except (Problem, Unreachable) as error:
        output.fail(f"the story broke off: {error}", output.REFUSED, f"{folder / 'stack.log'} says more")


def _say_where(folder: Path) -> None:
    results = folder / "results"
    output.console.print(f"contact sheet:   [bold]{results / 'contact-sheet.png'}[/]", soft_wrap=True)
    output.console.print(f"all of it:       [bold]{results}[/]", soft_wrap=True)


def tell_end(facts: Facts, folder: Path) -> None:
    """The last lines: all facts hold, or which did not, with what was seen and what was expected."""
    if facts.broken:
        said = f"{len(facts.broken)} of {output.count(len(facts.facts), 'fact')} did not hold"
        broken = [f"{fact.claim}: {fact.seen}" for fact in facts.broken]
        output.fail(said, output.REFUSED, f"{folder / 'stack.log'} says more", broken)
    output.console.print(f"[bold green]all {len(facts.facts)} facts hold[/]")
