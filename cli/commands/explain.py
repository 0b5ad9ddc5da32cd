"""`pointsman explain`: why a task went where it went."""

from typing import Any

import click

from cli import output
from cli.api import Api
from cli.context import Session, json_option, pass_session


@click.command()
@click.argument("task_id")
@json_option
@pass_session
def explain(session: Session, task_id: str, as_json: bool) -> None:
    """Explain every selection of TASK (or of a run's task): the four steps and each candidate's fate."""

    async def read(api: Api) -> tuple[dict[str, Any], dict[str, Any]]:
        task = await api.get(f"/v1/tasks/{task_id}")
        return task, await api.get(f"/v1/tasks/{task_id}/selections")

    task, answer = session.do(read)
    if as_json:
        output.show_json({"task": task, **answer})
        return
    output.console.print(f"task [bold]{task['id']}[/] for {task['model']} is [bold]{task['status']}[/]")
    if task.get("waiting_reason"):
        output.console.print(f"  waits: {task['waiting_reason']}", highlight=False)
    for selection in answer["selections"]:
        show_selection(selection)


def show_selection(selection: dict[str, Any]) -> None:
    """One round: the steps, then the candidates with their figures."""
    chosen = selection["chosen"] or "nobody"
    output.console.print(f"\n[bold]round {selection['round']}[/]: {chosen} ({selection['tier'] or 'no tier'})")
    for number, step in enumerate(selection["steps"], start=1):
        output.console.print(f"  {number}. {step}", highlight=False)
    rows = (
        (
            item["supply"],
            item["tier"],
            item["fate"] if item["fate"] != "ranked" else f"ranked {item['rank']}",
            item["step"],
            " ".join(part for part in (item["reason"], item["figures"]) if part),
            output.money(item["quote"]),
            item["health"],
            item["free_slots"],
        )
        for item in selection["candidates"]
    )
    columns = ("supply", "tier", "fate", "step", "why", "quote", "health", "free")
    baseline = output.money(selection["baseline"]) or "none"
    output.console.print(output.table(f"Candidates (baseline {baseline})", columns, rows))
