"""`pointsman run steer|pause|resume|redrive`: commands on a run. Each has an id, so that a person may repeat it."""

import uuid
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import click

from cli import output
from cli.context import Session, json_option, pass_session
from cli.given import read_input

key_option = click.option("--idempotency-key", "key", default="", help="Repeating with the same key is one command.")
reason_option = click.option("--reason", default="", help="Who and why: it stays in the history of the run.")


@click.command()
@click.argument("run_id")
@click.argument("kind")
@click.option("--text", help="Appended to the field that the node declares for KIND.")
@click.option("--value", "given", help="JSON, or @FILE, that replaces the field.")
@key_option
@json_option
@pass_session
def steer(
    session: Session, run_id: str, kind: str, text: str | None, given: str | None, key: str, as_json: bool
) -> None:
    """Give a run an input of KIND: nodes that declare it take it at the start of their next attempt."""
    if (text is None) is (given is None):
        output.fail("steer wants one of --text and --value", output.WRONG_USE, "--text adds, --value replaces")
    data = {"text": text} if given is None else {"value": read_input(given, "--value")}
    steered = _command(session, run_id, "steer", {"kind": kind, "data": data}, key)
    if as_json:
        output.show_json(steered)
        return
    output.console.print(f"accepted as input {steered['sequence']} ({steered['steering_event_id']})", highlight=False)
    if "kinds" in steered and not steered["nodes"]:
        known = ", ".join(steered["kinds"]) or "none"
        output.errors.print(f"nobody will take it: no node declares {kind!r}; declared: {known}", highlight=False)
    output.console.print(f"see who takes it: pointsman run watch {run_id}", highlight=False)


@click.command()
@click.argument("run_id")
@reason_option
@key_option
@json_option
@pass_session
def pause(session: Session, run_id: str, reason: str, key: str, as_json: bool) -> None:
    """Hold a run: nothing new is submitted; what providers have is followed, and may be charged."""
    _tell(_command(session, run_id, "pause", _said(reason=reason), key), as_json, "go on with: pointsman run resume {}")


@click.command()
@click.argument("run_id")
@reason_option
@key_option
@json_option
@pass_session
def resume(session: Session, run_id: str, reason: str, key: str, as_json: bool) -> None:
    """Let a paused run go on."""
    _tell(_command(session, run_id, "resume", _said(reason=reason), key), as_json, "follow it: pointsman run watch {}")


@click.command()
@click.argument("run_id")
@click.option("--node", default="", help="Only this node, MAP/ITEM for an item; without it, every node that failed.")
@click.option("--input", "given", default="", help="With --node: JSON, or @FILE; fields of its input that change.")
@click.option("--supply", default="", help="With --node: the only supply that may make it from now on.")
@reason_option
@click.option("--preview", is_flag=True, help="Only tell which nodes it would reach and what that may cost.")
@key_option
@json_option
@pass_session
def redrive(
    session: Session,
    run_id: str,
    node: str,
    given: str,
    supply: str,
    reason: str,
    preview: bool,
    key: str,
    as_json: bool,
) -> None:
    """Run nodes again, with all their history; what that touches is made anew, what stays equal is not."""
    if (given or supply) and not node:
        output.fail("--input and --supply are about one node", output.WRONG_USE, "add --node NODE")
    body: dict[str, Any] = _said(node=node, supply=supply, reason=reason)
    if given:
        body["input"] = read_input(given)
    if not preview:
        _tell(_command(session, run_id, "redrive", body, key), as_json, "follow it: pointsman run watch {}")
        return
    reached = _command(session, run_id, "redrive/preview", body, key)
    if as_json:
        output.show_json(reached)
    else:
        _show_preview(reached)


def _show_preview(reached: Mapping[str, Any]) -> None:
    rows = ((item["node"], item["effect"], output.money(item["cost"])) for item in reached["affected"])
    output.show_rows("A redrive would reach", ("node", "effect", "at most"), rows, "nothing")
    most = output.money(reached["cost"]) or "no money that anybody could name"
    output.console.print(f"together at most {most}; nothing was changed", highlight=False)
    output.console.print(
        "redriven: made again; stale: looked at again, and made again only if its input changed; "
        "kept: not begun yet, takes the new input anyway",
        highlight=False,
    )


def _command(session: Session, run_id: str, verb: str, body: Mapping[str, Any], key: str) -> dict[str, Any]:
    path = f"/v1/runs/{quote(run_id, safe='')}/{verb}"
    headers = {"Idempotency-Key": key or uuid.uuid4().hex}
    return session.do(lambda api: api.call("POST", path, body=body, headers=headers))


def _said(**texts: str) -> dict[str, Any]:
    return {name: text for name, text in texts.items() if text}


def _tell(found: Mapping[str, Any], as_json: bool, follow_up: str) -> None:
    if as_json:
        output.show_json(found)
        return
    output.console.print(f"run {found['id']} is {found['status']}", highlight=False)
    output.console.print(follow_up.format(found["id"]), highlight=False)


COMMANDS = (steer, pause, resume, redrive)
