"""`pointsman demo`: the main job on real media, told and checked."""

import asyncio
from pathlib import Path

import click

from cli import output
from cli.api import Problem, Unreachable
from cli.context import Session, pass_session
from cli.demo.facts import Facts
from cli.demo.play import play
from cli.demo.stage import StageError


@click.command()
@pass_session
def demo(session: Session) -> None:
    """Start a stack of its own, run the main job on it, and check every fact; exit code 0 only if all hold."""
    folder = (session.data / "demo").absolute()
    try:
        facts = asyncio.run(play(folder))
    except StageError as error:
        output.fail(str(error), output.REFUSED)
    except (Problem, Unreachable) as error:
        output.fail(f"the story broke off: {error}", output.REFUSED, f"{folder / 'stack.log'} says more")
    output.console.print(f"\nclips, pictures and report: [bold]{folder / 'results'}[/]")
    output.console.print(f"contact sheet:              [bold]{folder / 'results' / 'contact-sheet.png'}[/]")
    tell_end(facts, folder)


def tell_end(facts: Facts, folder: Path) -> None:
    """The last lines: all facts hold, or which did not, with what was seen and what was expected."""
    if facts.broken:
        said = f"{len(facts.broken)} of {output.count(len(facts.facts), 'fact')} did not hold"
        broken = [f"{fact.claim}: {fact.seen}" for fact in facts.broken]
        output.fail(said, output.REFUSED, f"{folder / 'stack.log'} says more", broken)
    output.console.print(f"[bold green]all {len(facts.facts)} facts hold[/]")
