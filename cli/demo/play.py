"""The whole story, from an empty folder to its facts."""

import shutil
from collections.abc import Awaitable
from pathlib import Path
from typing import TypeVar

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from cli import output
from cli.demo import acts, report
from cli.demo.accounts import compare
from cli.demo.acts import Story
from cli.demo.facts import Facts
from cli.demo.report import Told
from cli.demo.stage import Stage

T = TypeVar("T")
ACTS = 9


class Programme:
    """The progress bar over the acts."""

    def __init__(self, progress: Progress, acts: int) -> None:
        self._progress = progress
        self._bar = progress.add_task("starting the stack", total=acts)

    async def act(self, title: str, playing: Awaitable[T]) -> T:
        """Play one act under its title."""
        self._progress.update(self._bar, description=title)
        played = await playing
        self._progress.advance(self._bar)
        self._progress.console.print(f"  {title}", highlight=False)
        return played


async def play(folder: Path) -> Facts:
    """Play the story in `folder` and show its end; the facts, broken ones included."""
    facts = Facts()
    results = folder / "results"
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=output.console, transient=True) as progress:
        programme = Programme(progress, ACTS)
        stage = Stage(folder)
        async with stage:
            story = Story(stage, facts)
            await perform(programme, story)
            told = await finale(story, results)
    # The last fact is known only now; shown are all of them, in one table.
    facts.equal("exit code of the stack, drained and stopped", stage.exit_code, 0)
    report.show_facts(facts)
    report.write_report(facts, told, results)
    return facts


async def perform(programme: Programme, story: Story) -> None:
    """All acts in order."""
    await programme.act("four keyframes and a narration, by competing supplies", acts.pictures_and_voice(story))
    clips = await programme.act("a burst of 20 clips against 5 + 8 + 3 free slots", acts.burst(story))
    await programme.act("one account's key is revoked in the middle", acts.revoked_key(story))
    stubborn = await programme.act("one model answers 500 until its circuit opens", acts.failing_model(story))
    await programme.act("a 933 request while every full supply is out", acts.degraded_request(story))
    await programme.act("a moderation refusal", acts.refused_content(story))
    await programme.act("a provider takes a job and loses the answer", acts.lost_answer(story))
    await programme.act("the model recovers up the ladder", acts.recovery(story, stubborn))
    await programme.act("the key is given back and the held jobs are delivered", acts.restored_key(story, clips))


async def finale(story: Story, results: Path) -> list[Told]:
    """Files, tables, books; everything that was told of."""
    told = await report.every_run(story.api)
    await report.save_results(story, told, results)
    report.show_tasks(told)
    await report.show_explanation(story)
    lines = compare([task for _, task, _ in told], await story.ledger(), story.facts)
    report.show_books(lines)
    return told
