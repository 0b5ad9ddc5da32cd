"""The episode from an empty folder to its facts, and the end of its story: film, money, books, timeline."""

import asyncio
import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from cli import output
from cli.demo import episode as acts
from cli.demo import report, sheets
from cli.demo.accounts import Line, compare, in_cny
from cli.demo.episode import CATALOG, SETTINGS, STYLE, Document, Episode
from cli.demo.facts import Facts
from cli.demo.film import Reel, save_reel
from cli.demo.play import Programme
from cli.demo.stage import Stage

ACTS = 7


async def produce(folder: Path, document: Document) -> tuple[Facts, Reel]:
    """Make the episode in `folder` and show its end; the facts, broken ones included, and the film."""
    facts = Facts()
    results = folder / "results"
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    stage = Stage(folder, CATALOG, SETTINGS)
    with Progress(*columns, console=output.console, transient=True) as progress:
        programme = Programme(progress, ACTS)
        async with stage:
            episode = Episode(stage, facts, document)
            run = await perform(programme, episode)
            reel, told = await finale(episode, run, results)
    facts.equal("exit code of the stack, drained and stopped", stage.exit_code, 0)
    report.show_facts(facts)
    held = [{"claim": fact.claim, "held": fact.held, "seen": fact.seen} for fact in facts.facts]
    written = json.dumps({"facts": held, **told}, indent=2, ensure_ascii=False, default=str)
    (results / "report.json").write_text(written + "\n", encoding="utf-8")
    return facts, reel


async def perform(programme: Programme, episode: Episode) -> dict[str, Any]:
    """All acts in order; the Run at its end."""
    shots = len(episode.document["inputs"]["shots"])
    await programme.act("a reviewer approves the storyboard", acts.storyboard(episode))
    await programme.act(f"{shots} keyframes, canaries first, and a check of them", acts.keyframes(episode))
    await programme.act("a provider dies, and the style of the shots changes", acts.death_and_style(episode))
    await programme.act("kill -9 of everything, and a new start", acts.crash(episode))
    await programme.act("a shot fails its check and is redriven", acts.slip(episode))
    await programme.act("the budget reaches its soft limit, the other shots are made", acts.soft_limit(episode))
    return await programme.act("a film is put together and released", acts.release(episode))


async def finale(episode: Episode, run: dict[str, Any], results: Path) -> tuple[Reel, dict[str, Any]]:
    """Film, history, money, books; everything that was told of."""
    facts = episode.facts
    facts.equal("the production", run["status"], "succeeded")
    events = await episode.events()
    reel = await save_reel(episode.stage.api, run, sheets.makers(events), results, facts)
    judge_history(facts, run, events)
    costs = sheets.stages(events)
    show_costs(costs, reel.seconds)
    tasks = await asyncio.gather(*(episode.stage.api.get(f"/v1/tasks/{task}") for task in sheets.tasks(events)))
    ledger = await episode.ledger()
    lines = compare(tasks, ledger, facts)
    report.show_books(lines)
    await judge_money(episode, run, events, lines)
    line = sheets.timeline(events, episode.notes)
    show_timeline(line)
    told = {"run": run, "costs": [asdict(stage) for stage in costs], "timeline": line, "film_seconds": reel.seconds}
    return reel, told


def judge_history(facts: Facts, run: dict[str, Any], events: Sequence[dict[str, Any]]) -> None:
    """The history has no gap, tells the Run as it is, and tells that the rules were kept."""
    facts.equal("gaps in the history", sheets.gaps(events), [])
    facts.check("events of the history", len(events) > 0, len(events))
    rebuilt = sheets.rebuilt(events)
    states = {node["id"]: node["status"] for node in run["nodes"]}
    differing = sorted(name for name, state in states.items() if rebuilt.get(name) != state)
    facts.equal("nodes that the history tells otherwise", differing, [])
    early = [name for parent in ("keyframes", "motion") for name in sheets.first_of_class(events, parent)]
    facts.equal("items that did not wait for the canary of their class", early, [])
    held, wrong = sheets.styled(events, "motion", STYLE)
    facts.check("shots made in the new style", held > 0, held, "some")
    facts.equal("shots in a style that was not theirs", wrong, [])
    soft = sum(item["kind"] == "budget_soft_limit" for item in events)
    facts.equal("events of the budget's soft limit", soft, 1)
    most = sheets.most_begun_after_soft(events)
    facts.check("generations at once after it", most <= acts.SOFT_AT_ONCE, most, f"{acts.SOFT_AT_ONCE} at most")


async def judge_money(
    episode: Episode, run: dict[str, Any], events: Sequence[dict[str, Any]], lines: Sequence[Line]
) -> None:
    """The budget, the Run, its events and the providers tell one sum, and nothing is held any more."""
    facts, api = episode.facts, episode.stage.api
    budget = await api.get(f"/v1/operator/budgets/{run['budget_id']}")
    spent = in_cny(budget["spent"]["cost"])
    charged = sum((line.their_charge for line in lines), Decimal(0))
    facts.equal(
        "spent: by the budget and by the run", report.amount(spent), report.amount(in_cny(run["usage"]["cost"]))
    )
    facts.equal("spent: by the budget and by the providers", report.amount(spent), report.amount(charged))
    stages = sum((stage.spent for stage in sheets.stages(events)), Decimal(0))
    facts.equal("spent: by the stages", report.amount(stages), report.amount(spent))
    facts.equal("held in the end", report.amount(in_cny(budget["held"]["cost"])), "0.00")
    facts.equal("holds that were never settled", sheets.unsettled(events), [])
    told = (await api.get("/v1/operator/budgets:check"))["mismatches"]
    facts.equal("contradictions in the ledger of budgets", told, [])


def show_costs(stages: Sequence[sheets.Stage], seconds: float) -> None:
    """What was set aside and what it cost, by stage, and for each second that can be watched."""
    total = sheets.Stage(
        "all",
        sum(stage.nodes for stage in stages),
        sum(stage.attempts for stage in stages),
        sum((stage.held for stage in stages), Decimal(0)),
        sum((stage.spent for stage in stages), Decimal(0)),
    )
    rows = [
        (
            stage.name,
            stage.nodes,
            stage.attempts,
            report.amount(stage.held),
            report.amount(stage.spent),
            f"{stage.spent / Decimal(seconds):.4f}" if seconds else "",
        )
        for stage in (*stages, total)
    ]
    columns = ("stage", "nodes", "attempts", "held, CNY", "spent, CNY", "per usable second, CNY")
    output.console.print(output.table("Costs", columns, rows))


def show_timeline(line: Sequence[tuple[float, str]]) -> None:
    """What happened when."""
    output.console.print(output.table("Timeline", ("s", "what"), [(f"{at:.1f}", words) for at, words in line]))
