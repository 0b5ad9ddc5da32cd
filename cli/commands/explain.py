"""`pointsman explain`: why a task or a call went where it went."""

from collections.abc import Awaitable
from typing import Any, NoReturn
from urllib.parse import quote

import click

from cli import output
from cli.api import Api, Problem
from cli.commands.calls import show_call
from cli.commands.health import told
from cli.commands.replay import read_replay, show_replay
from cli.context import Session, json_option, pass_session
from cli.reading import ABSENT, read_run

NAMED = 40
"""How many nodes of a production are named by their tasks."""


@click.command()
@click.argument("task")
@click.option("--replay", is_flag=True, help="Decide every round again and compare byte for byte; 1 if any differs.")
@json_option
@pass_session
def explain(session: Session, task: str, replay: bool, as_json: bool) -> None:
    """Explain every selection of TASK, an id of a task, a run or a call: the four steps and each candidate's fate."""
    if replay:
        _replay(session, task, as_json)
        return
    found, answer, refusals = session.do(lambda api: _read_all(api, task))
    if "times" in found:
        _show_call(found, as_json)
        return
    if as_json:
        output.show_json({"task": found, **answer, "refusals": refusals})
        return
    said = " (cancel requested)" if found.get("cancel_requested") and not found.get("finished_at") else ""
    output.console.print(f"task [bold]{found['id']}[/] for {found['model']} is [bold]{found['status']}[/]{said}")
    if found.get("waiting_reason"):
        output.console.print(f"  waits: {found['waiting_reason']}", highlight=False, markup=False)
    if not answer["selections"]:
        output.console.print("no selection yet")
    for selection in answer["selections"]:
        show_selection(selection)
        for refusal in refusals:
            if refusal["round"] == selection["round"]:
                output.console.print(f"  {behind(refusal)}", highlight=False, markup=False)


def _show_call(call: dict[str, Any], as_json: bool) -> None:
    if as_json:
        output.show_json(call)
        return
    show_call(call)
    for selection in call["selections"]:
        show_selection(selection)


def behind(refusal: dict[str, Any]) -> str:
    """`a/x was refused: channel a was circuit_open because of opened (key_invalid) at …`."""
    whose = f"{refusal['sort']} {refusal['id']}"
    because = f" because of {told(refusal['cause'])}" if refusal["cause"] else ""
    return f"{refusal['supply']} was refused: {whose} was {refusal['state']}{because}"


def _replay(session: Session, name: str, as_json: bool) -> None:
    answer = session.do(lambda api: _read_replay(api, name))
    if as_json:
        output.show_json(answer)
    else:
        show_replay(answer)
    if not answer["identical"]:
        raise SystemExit(output.REFUSED)


async def _read_replay(api: Api, name: str) -> dict[str, Any]:
    """The replay of the task or run of that id, else of the call."""
    try:
        task = await find_task(api, name)
    except Problem as unknown:
        if unknown.code not in ABSENT:
            raise
        return await _of_call(read_replay(api, "calls", name), unknown)
    return await read_replay(api, "tasks", task["id"])


async def read(api: Api, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """(the task of that id, or of the run of that id; its selections)."""
    task = await find_task(api, name)
    return task, await api.get(f"/v1/tasks/{task['id']}/selections")


async def _read_all(api: Api, name: str) -> tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]:
    """(the task, its selections, its refusals for health). The last are for operators; others go without.

    A call comes alone: its record holds its selections.
    """
    try:
        found, answer = await read(api, name)
    except Problem as unknown:
        if unknown.code not in ABSENT:
            raise
        return await _of_call(api.get(f"/v1/calls/{quote(name, safe='')}"), unknown), {}, []
    try:
        told_to_operators = await api.get(f"/v1/operator/tasks/{found['id']}/explanation")
    except Problem as problem:
        if problem.status not in (403, 404):
            raise
        return found, answer, []
    return found, answer, told_to_operators["refusals"]


async def _of_call(asking: Awaitable[dict[str, Any]], unknown: Problem) -> dict[str, Any]:
    """What is asked of a call; where there is none either, `unknown`, which names all that was looked for."""
    try:
        return await asking
    except Problem as problem:
        if problem.code not in ABSENT:
            raise
        raise unknown from problem


async def find_task(api: Api, name: str) -> dict[str, Any]:
    """The task of that id, or of the run of that id."""
    try:
        return await api.get(f"/v1/tasks/{quote(name, safe='')}")
    except Problem as problem:
        if problem.code != "not_found":
            raise
        return await _of_run(api, name, problem)


async def _of_run(api: Api, name: str, unknown: Problem) -> dict[str, Any]:
    try:
        run = await read_run(api, name)
    except Problem as problem:
        if problem.code != "not_found":
            raise
        neither = f"there is no task, no run and no call {name!r} for this key"
        raise Problem(unknown.status, {**unknown.body, "detail": neither}) from problem
    if run.get("production"):
        _refuse_production(run)
    if not run["nodes"] or not run["nodes"][0]["task_id"]:
        raise Problem(unknown.status, {**unknown.body, "detail": f"run {run['id']} is {run['status']} without a task"})
    return await api.get(f"/v1/tasks/{run['nodes'][0]['task_id']}")


def _refuse_production(run: dict[str, Any]) -> NoReturn:
    """Its nodes went different ways: which one is meant is for the caller to say."""
    tasks = [f"{node['id']}: {node['task_id']}" for node in run["nodes"] if node["task_id"]]
    more = [f"… and {len(tasks) - NAMED} more"] if len(tasks) > NAMED else []
    output.fail(
        f"run {run['id']} is a production of many tasks" if tasks else f"nothing of run {run['id']} has a task yet",
        output.REFUSED,
        "`pointsman explain TASK`; `pointsman run show RUN --json` names every task",
        [*tasks[:NAMED], *more],
    )


def why(reason: str, figures: str) -> str:
    """The reason of a fate and its figures, which mostly name it: `supply a/x concurrency 5 of 5`."""
    return (
        figures if reason and reason.replace("_", " ") in figures.replace("_", " ") else f"{reason} {figures}".strip()
    )


def show_selection(selection: dict[str, Any]) -> None:
    """One round: the steps, then the candidates with their figures."""
    chosen = selection["chosen"] or "nobody"
    output.console.print(f"\n[bold]round {selection['round']}[/]: {chosen} ({selection['tier'] or 'no tier'})")
    for number, step in enumerate(selection["steps"], start=1):
        output.console.print(f"  {number}. {step}", highlight=False, markup=False)
    rows = (
        (
            item["supply"],
            item["tier"],
            item["fate"] if item["fate"] != "ranked" else f"ranked {item['rank']}",
            item["step"],
            why(item["reason"], item["figures"]),
            output.money(item["quote"]),
            item["health"],
            item["free_slots"],
        )
        for item in selection["candidates"]
    )
    columns = ("supply", "tier", "fate", "step", "why", "quote", "health", "free")
    baseline = output.money(selection["baseline"]) or "none"
    output.console.print(output.table(f"Candidates (baseline {baseline})", columns, rows))
