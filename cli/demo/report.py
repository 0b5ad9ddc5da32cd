"""The end of the story: the table of tasks, one explanation, the two books, the files, and the facts."""

import asyncio
import json
import tempfile
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from rich.text import Text

from cli import output
from cli.commands.explain import show_selection
from cli.commands.run import save_artifacts
from cli.demo.accounts import Line, in_cny
from cli.demo.acts import Story
from cli.demo.facts import Facts
from cli.demo.pictures import contact_sheet, frame_of
from libs.kernel.money import Money

Told = tuple[dict[str, Any], dict[str, Any], dict[str, Any]]
"""A Run, its Task, and the Task's last selection."""
YES, NO = Text("yes", "green"), Text("NO", "bold red")


async def every_run(api: Any) -> list[Told]:
    """All Runs of the story, oldest first."""
    page = await api.get("/v1/runs", page_size=200)
    return list(await asyncio.gather(*(_told(api, run) for run in reversed(page["runs"]))))


async def _told(api: Any, run: dict[str, Any]) -> Told:
    path = f"/v1/tasks/{run['nodes'][0]['task_id']}"
    selections = (await api.get(f"{path}/selections"))["selections"]
    return run, await api.get(path), selections[-1]


async def save_results(story: Story, told: Sequence[Told], folder: Path) -> list[tuple[Path, str]]:
    """Every file of every Run in `folder`, and the contact sheet of the clips; (path, who made it) of each clip."""
    clips = []
    for number, (run, _, _) in enumerate(told, start=1):
        if run["status"] != "succeeded":
            continue
        supply = run["usage"]["supply"]
        stem = f"{number:02d}-{run['labels']['act'].replace(' ', '-')}-{supply.replace('/', '-')}"
        paths = await save_artifacts(story.api, run, folder, stem)
        clips += [(path, supply) for path in paths if path.suffix == ".mp4"]
    with tempfile.TemporaryDirectory() as scratch:
        frames = [(await frame_of(path, Path(scratch) / f"{path.stem}.png"), who) for path, who in clips]
        whole = [(path, who) for path, who in frames if path is not None]
        story.facts.equal("clips that decode", len(whole), len(clips))
        if whole:
            contact_sheet(whole, folder / "contact-sheet.png")
    return clips


def show_tasks(told: Sequence[Told]) -> None:
    """One line for each Run: where it went, how often, for how much, and why."""
    rows = []
    for run, task, selection in told:
        usage = run["usage"]
        rows.append(
            (
                run["labels"]["act"],
                run["model"],
                run["status"],
                usage["supply"],
                len(task["attempts"]),
                amount(in_cny(usage["cost"])),
                why(run, task, selection),
            )
        )
    columns = ("act", "model", "status", "supply", "attempts", "cost CNY", "why")
    output.console.print(output.table("Tasks", columns, rows))


def amount(value: Decimal) -> str:
    """At least two decimals, no trailing zeros beyond them."""
    return Money("CNY", value).to_json()["amount"]


def why(run: dict[str, Any], task: dict[str, Any], selection: dict[str, Any]) -> str:
    """The reason of the last choice in a few words."""
    result = run["result"] or {}
    errors = [attempt["error"]["code"] for attempt in task["attempts"] if attempt["error"]]
    if run["error"]:
        return str(run["error"]["code"])
    dropped = [f"{item['supply']} {item['reason']}" for item in selection["candidates"] if item["fate"] == "dropped"]
    lost = f"degraded to {result['actual_profile']}: " if result.get("degraded") else ""
    first = sum(item["fate"] in {"chosen", "ranked"} for item in selection["candidates"])
    rank = f"first of {first}" if first > 1 else "the only one left" if dropped else "the only one"
    return lost + "; ".join([*(["after " + ", ".join(errors)] if errors else []), rank, *dropped])


async def show_explanation(story: Story) -> None:
    """The last selection of the degraded Task, in the four steps."""
    if not story.explained:
        return
    answer = await story.api.get(f"/v1/tasks/{story.explained}/selections")
    output.console.print("\n[bold]Why the 933 request went where it went[/]")
    for selection in answer["selections"][-1:]:
        story.facts.equal("the explanation has four steps", len(selection["steps"]), 4)
        show_selection(selection)


def show_books(lines: Sequence[Line]) -> None:
    """Both books side by side."""
    rows = [(i.account, i.ours, i.theirs, amount(i.our_cost), amount(i.their_charge)) for i in lines]
    total = (
        "all",
        sum(i.ours for i in lines),
        sum(i.theirs for i in lines),
        amount(sum((i.our_cost for i in lines), Decimal(0))),
        amount(sum((i.their_charge for i in lines), Decimal(0))),
    )
    columns = ("account", "our submissions", "their ledger", "our cost, CNY", "their charge, CNY")
    output.console.print(output.table("Books", columns, [*rows, total]))


def show_facts(facts: Facts) -> None:
    """Every claim with what was seen."""
    rows = [(YES if fact.held else NO, fact.claim, fact.seen) for fact in facts.facts]
    output.console.print(output.table("Checked", ("", "fact", "seen"), rows))


def write_report(facts: Facts, told: Sequence[Told], folder: Path) -> None:
    """The same as JSON beside the files."""
    claimed = [{"claim": fact.claim, "held": fact.held, "seen": fact.seen} for fact in facts.facts]
    document = {"facts": claimed, "runs": [run for run, _, _ in told], "tasks": [task for _, task, _ in told]}
    (folder / "report.json").write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
