"""`pointsman dead-letters`: the case files of nodes that ended without a result."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import click

from cli import output
from cli.api import Api
from cli.commands.review import every
from cli.context import Session, json_option, pass_session

AT = "/v1/operator/dead-letters"


@click.group("dead-letters")
def dead_letters() -> None:
    """Dead letters: nodes that ended without a result, each as a closed case file."""


@dead_letters.command("list")
@click.option("--run", "run_id", default="", help="Only of this run.")
@click.option("--tenant", default="", help="Only this tenant's.")
@click.option("--all", "every_one", is_flag=True, help="Also those that were redriven.")
@json_option
@pass_session
def list_(session: Session, run_id: str, tenant: str, every_one: bool, as_json: bool) -> None:
    """List case files, newest first."""
    said = (("run", run_id), ("tenant", tenant), ("redriven", "true" if every_one else ""))
    query = {name: value for name, value in said if value}

    async def read(api: Api) -> dict[str, Any]:
        return {"dead_letters": [item async for item in every(api, AT, "dead_letters", query)]}

    answer = session.do(read)
    if as_json:
        output.show_json(answer)
        return
    columns = ("id", "run", "node", "since", "desk", "cost", "error", "redriven")
    output.show_rows("Dead letters", columns, map(_row, answer["dead_letters"]), "no dead letters")


def _row(item: Mapping[str, Any]) -> tuple[object, ...]:
    error = item["error"] or {}
    return (
        item["id"],
        item["run_id"],
        item["node"],
        output.when(item["created_at"]),
        item["desk"],
        output.money(item["cost"]),
        error.get("code"),
        output.when(item["redriven_at"]),
    )


@dead_letters.command()
@click.argument("letter_id", metavar="ID")
@json_option
@pass_session
def show(session: Session, letter_id: str, as_json: bool) -> None:
    """Show one case file: what was tried, what it cost, and what to do next."""
    item = session.do(lambda api: api.get(f"{AT}/{quote(letter_id, safe='')}"))
    if as_json:
        output.show_json(item)
        return
    console = output.console
    console.print(f"[bold]{item['id']}[/]  node {item['node']} of run {item['run_id']}", highlight=False)
    error = item["error"]
    lines = [
        f"error: {error['code']}: {error['message']}" if error else "no error was told",
        f"tenant {item['tenant']}, since {output.when(item['created_at'])}, for the desk {item['desk']!r}",
        f"cost {output.money(item['cost']) or 'nothing'}",
        *([f"input: {item['input']}"] if item["input"] else []),
    ]
    for line in lines:
        console.print(f"  {line}", highlight=False, markup=False, soft_wrap=True)
    for artifact in item["artifacts"]:
        console.print(f"  {artifact['media_type']} {artifact['url']}", highlight=False)
    columns = ("#", "supply", "state", "cost", "error", "provider's id", "task")
    output.show_rows("What was tried", columns, map(_attempt, item["attempts"]), "nothing was ever sent")
    if item["redriven_at"]:
        reason = item["redrive_reason"] or "no reason given"
        console.print(f"redriven at {output.when(item['redriven_at'])}: {reason}", highlight=False, markup=False)
    else:
        again = f"pointsman run redrive {item['run_id']} --node {item['node']}"
        console.print(f"what a redrive would cost: {again} --preview", highlight=False)
        console.print(f"with another input: {again} --input '{{…}}' --reason 'who and why'", highlight=False)


def _attempt(item: Mapping[str, Any]) -> tuple[object, ...]:
    """As the history of the run tells it."""
    return (
        item.get("number"),
        item.get("supply"),
        item.get("state"),
        output.money(item.get("cost")),
        (item.get("error") or {}).get("code"),
        item.get("provider_task_id"),
        item.get("task_id"),
    )
