"""`pointsman run`: create, watch, show, events, list, cancel. Commands on a run under way stand in `steering`."""

import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from cli import output
from cli.api import Api
from cli.commands.steering import COMMANDS
from cli.context import Session, json_option, pass_session
from cli.files import read_order
from cli.given import EXTENSIONS, pairs, read_input
from cli.progress import describe, follow
from cli.reading import read_run
from cli.run_view import TERMINAL, show_run


@click.group()
def run() -> None:
    """Runs: create one, follow it, look at it, steer it, end it."""


for command in COMMANDS:
    run.add_command(command)


@run.command()
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--model", default="", help="Without FILE: the Public Model, as `pointsman models` lists it.")
@click.option("--input", "given", default="", help="Without FILE: the input, as JSON or @FILE.")
@click.option("--option", "options", multiple=True, help="NAME=VALUE, for example degradation=strict.")
@click.option("--label", "labels", multiple=True, help="NAME=VALUE.")
@click.option("--idempotency-key", default="", help="Repeating with the same key is the same run.")
@click.option("--watch", is_flag=True, help="Follow it to its end.")
@click.option("--save", type=click.Path(path_type=Path, file_okay=False), help="With --watch: save its files here.")
@json_option
@pass_session
def create(
    session: Session,
    file: Path | None,
    model: str,
    given: str,
    options: tuple[str, ...],
    labels: tuple[str, ...],
    idempotency_key: str,
    watch: bool,
    save: Path | None,
    as_json: bool,
) -> None:
    """Create a run: a production or one request from FILE (YAML), or one request from --model and --input."""
    if save and not watch:
        output.fail("--save wants the run's files, which are there at its end", output.WRONG_USE, "add --watch")
    body = _order(file, model, given, options)
    if labels:
        body["labels"] = {**body.get("labels", {}), **pairs(labels, text=True)}
    headers = {"Idempotency-Key": idempotency_key or uuid.uuid4().hex}
    made = session.do(lambda api: api.call("POST", "/v1/runs", body=body, headers=headers))
    if watch:
        output.errors.print(f"run {made['id']}", highlight=False)
        _watch(session, made["id"], save, as_json)
    elif as_json:
        output.show_json(made)
    else:
        output.console.print(f"run {made['id']} is {made['status']}", highlight=False)
        output.console.print(f"follow it with: {follow_up(made['id'])}", highlight=False)


def _order(file: Path | None, model: str, given: str, options: tuple[str, ...]) -> dict[str, Any]:
    """The body without labels; wrong use unless exactly one of both ways is taken."""
    if file is not None:
        if model or given or options:
            message = f"{file} says already what is to be made"
            output.fail(message, output.WRONG_USE, "leave out --model, --input and --option, or leave out the file")
        return read_order(file)
    if not model or not given:
        output.fail("create wants a FILE, or --model and --input", output.WRONG_USE, "see pointsman run create -h")
    return {"model": model, "input": read_input(given), "options": pairs(options)}


@run.command()
@click.argument("run_id")
@click.option("--save", type=click.Path(path_type=Path, file_okay=False), help="Save its files here.")
@json_option
@pass_session
def watch(session: Session, run_id: str, save: Path | None, as_json: bool) -> None:
    """Follow a run to its end; exit code 4 if it ends without a result."""
    _watch(session, run_id, save, as_json)


@run.command()
@click.argument("run_id")
@click.option("--all", "every_item", is_flag=True, help="Every item of large maps, also those that tell nothing.")
@json_option
@pass_session
def show(session: Session, run_id: str, every_item: bool, as_json: bool) -> None:
    """Show a run: its nodes with what they wait for and cost, or the attempts of a single request.

    An operator's key shows runs of every tenant.
    """

    async def read(api: Api) -> tuple[dict[str, Any], dict[str, Any]]:
        found = await read_run(api, run_id)
        single = not found.get("production") and found["nodes"]
        task_id = found["nodes"][0].get("task_id") if single else None
        return found, await api.get(f"/v1/tasks/{task_id}") if task_id else {}

    found, task = session.do(read)
    if as_json:
        output.show_json({"run": found, "task": task})
    else:
        show_run(found, task, every_item=every_item)


@run.command()
@click.argument("run_id")
@click.option("--after", default=0, help="Only events after this sequence.")
@click.option("--limit", default=100, show_default=True)
@json_option
@pass_session
def events(session: Session, run_id: str, after: int, limit: int, as_json: bool) -> None:
    """Show what happened to a run, oldest first. An operator's key shows runs of every tenant."""
    page = session.do(lambda api: read_run(api, run_id, "/events", after=after, limit=limit))
    if as_json:
        output.show_json(page)
        return
    told = page["events"]
    rows = ((item["sequence"], output.when(item["created_at"]), item["kind"], describe(item)) for item in told)
    output.show_rows("Events", ("#", "when", "kind", "what"), rows, "nothing has happened since")
    if len(told) == limit:
        output.console.print(f"there may be more: --after {told[-1]['sequence']}", highlight=False)


@run.command()
@click.argument("run_id")
@json_option
@pass_session
def callbacks(session: Session, run_id: str, as_json: bool) -> None:
    """Show what became of the messages to a run's callback_url."""
    found = session.do(lambda api: api.get(f"/v1/runs/{run_id}/callbacks"))
    if as_json:
        output.show_json(found)
        return
    rows = (
        (
            item["id"],
            item["type"],
            item["state"],
            item["attempts"],
            output.when(item["next_at"] or item["finished_at"]),
            item["last_error"] or "",
        )
        for item in found["callbacks"]
    )
    output.show_rows("Callbacks", ("id", "type", "state", "sent", "next or ended", "last error"), rows, "no callbacks")


@run.command("list")
@click.option("--status", default="", help="Only runs in this status.")
@click.option("--label", default="", help="Only runs with this label, NAME=VALUE or NAME.")
@click.option("--tenant", default="", help="With an operator's key: those of this tenant.")
@click.option("--all-tenants", is_flag=True, help="With an operator's key: those of every tenant.")
@click.option("--limit", default=20, show_default=True)
@click.option("--page-token", default="", help="Those that are older than the page that named it.")
@json_option
@pass_session
def list_(
    session: Session,
    status: str,
    label: str,
    tenant: str,
    all_tenants: bool,
    limit: int,
    page_token: str,
    as_json: bool,
) -> None:
    """List runs of the key's own tenant, or of others with an operator's key, newest first."""
    if tenant and all_tenants:
        output.fail("list wants one tenant or all", output.WRONG_USE, "leave out --tenant or --all-tenants")
    path = "/v1/operator/runs" if tenant or all_tenants else "/v1/runs"
    said = (("status", status), ("label", label), ("tenant", tenant), ("page_token", page_token))
    query = {name: value for name, value in said if value}
    page = session.do(lambda api: api.get(path, page_size=limit, **query))
    if as_json:
        output.show_json(page)
        return
    rows = (
        (
            item["id"],
            *([item["tenant"]] if all_tenants else []),
            item["status"],
            item["model"] or item.get("production"),
            output.when(item["created_at"]),
            item["usage"]["supply"],
            item["usage"]["attempts"],
            output.money(item["usage"]["cost"]),
            (item["error"] or {}).get("code"),
        )
        for item in page["runs"]
    )
    whose = ("tenant",) if all_tenants else ()
    columns = ("run", *whose, "status", "makes", "created", "supply", "attempts", "cost", "error")
    output.show_rows("Runs", columns, rows, "no runs")
    if page["next_page_token"]:
        older = page["next_page_token"]
        output.console.print(f"there are older ones: --page-token {older}, or more at once by --limit", highlight=False)


@run.command()
@click.argument("run_id", required=False, default="")
@click.option("--key-of", "key", default="", help="Instead of RUN_ID: the idempotency key that the run came of.")
@json_option
@pass_session
def cancel(session: Session, run_id: str, key: str, as_json: bool) -> None:
    """Ask for a run to end, by its id or by its idempotency key."""
    if bool(run_id) is bool(key):
        output.fail("cancel wants a run or a key", output.WRONG_USE, "say RUN_ID, or --key-of KEY")
    path, body = (f"/v1/runs/{run_id}/cancel", None) if run_id else ("/v1/runs:cancelByKey", {"idempotency_key": key})
    found = session.do(lambda api: api.call("POST", path, body=body))
    run_id = found["id"]
    if as_json:
        output.show_json(found)
    else:
        output.console.print(f"cancel requested; run {run_id} is {found['status']}", highlight=False)
        output.console.print(
            "A provider may refuse to stop a job that it has begun, and charge it. "
            f"See how it ends: {follow_up(run_id)}",
            highlight=False,
        )


def follow_up(run_id: str) -> str:
    """The command that follows a run."""
    return f"pointsman run watch {run_id}"


def _watch(session: Session, run_id: str, save: Path | None, as_json: bool) -> None:
    again = follow_up(run_id)
    try:
        found = session.do(lambda api: follow(api, run_id, quiet=as_json), if_away=again)
    except KeyboardInterrupt:
        output.errors.print(f"run {run_id} goes on; follow it with: {again}", highlight=False)
        raise SystemExit(output.INTERRUPTED) from None
    if save and found["status"] == "succeeded":
        _save(session, found, save)
    if as_json:
        output.show_json(found)
    else:
        show_run(found, {})
    if found["status"] in TERMINAL and found["status"] != "succeeded":
        raise SystemExit(output.NO_RESULT)


def _save(session: Session, found: Mapping[str, Any], folder: Path) -> None:
    again = f"{follow_up(found['id'])} --save FOLDER"
    try:
        paths = session.do(lambda api: save_artifacts(api, found, folder), if_away=again)
    except OSError as error:
        output.fail(f"--save: {folder} cannot be written: {error.strerror or error}", output.REFUSED, again)
    for path in paths:
        output.errors.print(f"saved {path}", highlight=False, markup=False)


async def save_artifacts(api: Api, found: Mapping[str, Any], folder: Path, stem: str = "") -> list[Path]:
    """Download a run's files into `folder`; their paths."""
    return await download_all(api, (found.get("result") or {}).get("artifacts", ()), folder, stem or found["id"])


async def download_all(api: Api, artifacts: Iterable[Mapping[str, Any]], folder: Path, stem: str) -> list[Path]:
    """Download artifacts into `folder` as STEM-1.png and so on; their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number, artifact in enumerate(artifacts, start=1):
        name = f"{stem}-{number}{EXTENSIONS.get(artifact['media_type'], '.bin')}"
        await api.download(f"/v1/artifacts/{artifact['sha256']}", folder / name)
        paths.append(folder / name)
    return paths
