"""`pointsman invoke`: a synchronous call, answered while one waits."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from cli import output
from cli.api import Api
from cli.commands.run import download_all
from cli.context import Session, json_option, pass_session
from cli.given import pairs, read_input


@click.command()
@click.option("--model", required=True, help="The Public Model, as `pointsman models` lists it.")
@click.option("--input", "given", required=True, help="The input: JSON, or @FILE.")
@click.option("--option", "options", multiple=True, help="NAME=VALUE, for example timeout_s=20 or cache=false.")
@click.option("--stream", is_flag=True, help="Chat alone: print the answer as it comes.")
@click.option("--save", type=click.Path(path_type=Path, file_okay=False), help="Save the files that come of it here.")
@json_option
@pass_session
def invoke(
    session: Session,
    model: str,
    given: str,
    options: tuple[str, ...],
    stream: bool,
    save: Path | None,
    as_json: bool,
) -> None:
    """Serve one request of a chat, embedding, image, speech or OCR model at once."""
    if stream and (as_json or save):
        output.fail("--stream prints the answer as it comes", output.WRONG_USE, "leave out --json and --save")
    value = read_input(given)
    if stream:
        if not isinstance(value, dict):
            output.fail("--input must be an object", output.WRONG_USE)
        session.do(lambda api: _print_stream(api, {**value, "model": model, "options": pairs(options)}))
        return
    body = {"model": model, "input": value, "options": pairs(options)}
    found = session.do(lambda api: _call(api, body, save))
    if as_json:
        output.show_json(found)
    else:
        _show(found)


async def _call(api: Api, body: Mapping[str, Any], save: Path | None) -> dict[str, Any]:
    found = await api.call("POST", "/v1/invoke", body=body)
    if save and found["artifacts"]:
        try:
            paths = await download_all(api, found["artifacts"], save, found["id"])
        except OSError as error:
            output.fail(f"--save: {save} cannot be written: {error.strerror or error}", output.REFUSED)
        for path in paths:
            output.errors.print(f"saved {path}", highlight=False, markup=False)
    return found


async def _print_stream(api: Api, body: Mapping[str, Any]) -> None:
    call_id = ""
    async for chunk in api.chunks(body):
        call_id = str(chunk.get("id", "")).removeprefix("chatcmpl-")
        for choice in chunk["choices"]:
            output.console.print(choice["delta"].get("content") or "", end="", highlight=False, markup=False)
    output.console.print()
    output.errors.print(f"call {call_id}; see it with: pointsman explain {call_id}", highlight=False, markup=False)


def _show(found: Mapping[str, Any]) -> None:
    for line in _words(found["kind"], found["output"]):
        output.console.print(line, highlight=False, markup=False)
    for artifact in found["artifacts"]:
        size = output.count(artifact["bytes"], "byte")
        output.console.print(f"{artifact['media_type']} {size} {artifact['url']}", highlight=False)
    if found["degraded"]:
        lost = ", ".join(found["dropped_inputs"])
        output.console.print(f"degraded {found['requested_profile']} -> {found['actual_profile']}, without {lost}")
    usage = found["usage"]
    whom = "the response cache" if found["cached"] else usage["supply"] or "-"
    tries = output.count(usage["attempts"], "attempt")
    cost = output.money(usage["cost"]) or "no cost"
    output.errors.print(
        f"call {found['id']}: {whom}, {tries}, {cost}; see it with: pointsman explain {found['id']}",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


def _words(kind: str, given: Mapping[str, Any]) -> list[str]:
    """What a person reads first of an output; of pictures and speech the files say it all."""
    if kind == "chat":
        messages = [choice.get("message") or {} for choice in given.get("choices", ())]
        return [str(message.get("content") or message.get("tool_calls") or "") for message in messages]
    if kind == "embedding":
        vectors = [item["embedding"] for item in given.get("data", ())]
        return [f"{output.count(len(vectors), 'vector')} of {len(vectors[0]) if vectors else 0} numbers"]
    return [str(given["text"])] if kind == "ocr" else []
