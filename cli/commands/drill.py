"""`pointsman drill`: one controlled fault in a stack of its own, and what it cost."""

import asyncio

import click
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from cli import output
from cli.api import Problem, Unreachable
from cli.context import Session, json_option, pass_session
from cli.demo.stage import StageError
from cli.drills.acts import DRILLS
from cli.drills.play import fault_of, play
from cli.drills.report import Report


@click.command()
@click.argument("name", required=False, type=click.Choice(list(DRILLS)))
@click.option("--list", "listing", is_flag=True, help="Tell which drills there are, and what each does.")
@json_option
@pass_session
def drill(session: Session, name: str | None, listing: bool, as_json: bool) -> None:
    """Inject one controlled fault into a stack of its own and report recovery time, data lost, double charges and
    orphan nodes; exit code 0 only if the promise was kept."""
    if listing:
        _list(as_json)
        return
    if name is None:
        output.fail("no drill was named", output.WRONG_USE, "`pointsman drill --list` tells which there are")
    folder = (session.data / "drill").absolute()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    quiet = not output.errors.is_terminal
    try:
        with Progress(*columns, console=output.errors, disable=quiet, transient=True) as progress:
            bar = progress.add_task(name, total=None)
            report = asyncio.run(play(name, folder, lambda text: progress.update(bar, description=f"{name}: {text}")))
    except (StageError, Problem, Unreachable) as error:
        output.fail(f"the drill broke off: {error}", output.REFUSED, f"{folder / 'stack.log'} says more")
    if as_json:
        output.show_json(report.as_json())
    else:
        _show(report)
    if not report.kept:
        broken = [f"{fact.claim}: {fact.seen}" for fact in report.facts.broken]
        said = f"{len(broken)} of {output.count(len(report.facts.facts), 'fact')} did not hold"
        output.fail(said, output.REFUSED, f"{folder / 'stack.log'} says more", broken)


def _list(as_json: bool) -> None:
    drills = [{"name": name, "fault": fault_of(name)} for name in DRILLS]
    if as_json:
        output.show_json({"drills": drills})
    else:
        output.show_rows("Drills", ("drill", "what it does"), [tuple(item.values()) for item in drills], "none")


def _show(report: Report) -> None:
    output.console.print(f"[bold]{report.drill}[/]: {report.fault}", highlight=False)
    measures = (
        ("noticed after", _seconds(report.noticed_s)),
        ("recovered after", _seconds(report.recovery_s)),
        ("data lost", ", ".join(report.data_lost) or "none"),
        ("double charges", report.double_charges),
        ("charges on no book of ours", report.unbooked_charges),
        ("orphan nodes", ", ".join(report.orphan_nodes) or "none"),
    )
    output.console.print(output.table("Measured", ("", "seen"), measures))
    rows = [
        (Text("yes", "green") if fact.held else Text("NO", "bold red"), fact.claim, fact.seen)
        for fact in report.facts.facts
    ]
    output.console.print(output.table("Promised", ("", "fact", "seen"), rows))


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.1f} s"
