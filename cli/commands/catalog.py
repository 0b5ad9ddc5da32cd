"""`pointsman catalog`: apply, diff, publish, show."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from cli import output
from cli.context import Session, json_option, pass_session

file_argument = click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
merge_option = click.option("--merge", is_flag=True, help="Keep what the file does not name.")
WHY_NOT = "`pointsman catalog publish MODEL` opens one, or tells every reason against it"


@click.group()
def catalog() -> None:
    """The catalogue: what is on offer, over which account, under which policy."""


@catalog.command()
@file_argument
@merge_option
@json_option
@pass_session
def apply(session: Session, file: Path, merge: bool, as_json: bool) -> None:
    """Apply FILE, all or nothing."""
    answer = _send(session, "apply", file, merge)
    if as_json:
        output.show_json(answer)
        return
    output.console.print(f"catalogue revision {answer['revision']}")
    _show_changes(answer["changes"])
    rows = (
        (item["model"], "yes" if item["published"] else "no", "\n".join(item["reasons"]))
        for item in answer["publications"]
    )
    output.show_rows("Models", ("model", "published", "why not"), rows, "no models")


@catalog.command()
@file_argument
@merge_option
@json_option
@pass_session
def diff(session: Session, file: Path, merge: bool, as_json: bool) -> None:
    """Show what applying FILE would change."""
    answer = _send(session, "diff", file, merge)
    if as_json:
        output.show_json(answer)
    else:
        _show_changes(answer["changes"])


@catalog.command()
@click.argument("model")
@json_option
@pass_session
def publish(session: Session, model: str, as_json: bool) -> None:
    """Open MODEL to callers, if it passes the gate."""
    path = f"/v1/operator/models/{quote(model, safe='')}:publish"
    answer = session.do(lambda api: api.call("POST", path))
    if as_json:
        output.show_json(answer)
    else:
        output.console.print(f"{model} is published")


@catalog.command()
@json_option
@pass_session
def show(session: Session, as_json: bool) -> None:
    """Show everything that is declared."""
    answer = session.do(lambda api: api.get("/v1/operator/catalog"))
    if as_json:
        output.show_json(answer)
        return
    rows = ((item["kind"], item["id"], item["revision"], _standing(item), _why(item)) for item in answer["objects"])
    title = f"Catalogue revision {answer['revision']}"
    columns = ("kind", "id", "revision", "standing", "evidence, or why not published")
    output.show_rows(title, columns, rows, "the catalogue is empty")
    closed = unpublished(answer["objects"])
    if closed:
        output.console.print(f"not published: {', '.join(closed)}; {WHY_NOT}", highlight=False, markup=False)


def unpublished(objects: Iterable[Mapping[str, Any]]) -> list[str]:
    """The models in force that callers may not use."""
    return [item["id"] for item in objects if item["kind"] == "model" and not item["published"]]


def _send(session: Session, verb: str, file: Path, merge: bool) -> dict[str, Any]:
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        output.fail(f"{file} cannot be read: {error.strerror}", output.WRONG_USE)
    except UnicodeDecodeError as error:
        output.fail(f"{file} is no text in UTF-8 (byte {error.start}); is it a catalogue?", output.WRONG_USE)
    query = {"merge": "true"} if merge else {}
    return session.do(lambda api: api.call("POST", f"/v1/operator/catalog:{verb}", text=text, query=query))


def _show_changes(changes: list[dict[str, Any]]) -> None:
    rows = ((item["kind"], item["id"], item["change"], "\n".join(item["details"])) for item in changes)
    output.show_rows("Changes", ("kind", "id", "change", "details"), rows, "no changes")


def _why(item: dict[str, Any]) -> str:
    return item.get("evidence") or "\n".join(item.get("reasons", ()))


def _standing(item: dict[str, Any]) -> str:
    if item["kind"] == "model":
        return "published" if item["published"] else "not published"
    return str(item["spec"].get("admin", ""))
