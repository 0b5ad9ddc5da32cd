"""`pointsman supply`: what an operator says of a Supply, and evidence that one can stand in for another."""

import asyncio
from typing import Any
from urllib.parse import quote

import click
from ulid import ULID

from cli import output
from cli.api import Api, Unreachable
from cli.commands.switching import give_verbs
from cli.context import Session, json_option, pass_session

WAIT_S = 20
RECONNECT_S, RECONNECTS = 1.0, 30


@click.group()
def supply() -> None:
    """Supplies: run their regression sets, take one in or out of use. `pointsman health` shows them."""


give_verbs(supply, "supply", "supplies")


@supply.command()
@click.argument("supply_id")
@json_option
@pass_session
def verify(session: Session, supply_id: str, as_json: bool) -> None:
    """Run the regression set of SUPPLY_ID with real requests and keep the verdict; exit code 4 if it fails.

    The requests are paid for like any others. A passed set lets the supply be a fallback, degraded or second exact one,
    as long as its capability version stays.
    """
    answer = session.do(lambda api: _ended(api, supply_id, str(ULID())))
    if as_json:
        output.show_json(answer)
    else:
        _show(answer)
    if answer["status"] != "passed":
        raise SystemExit(output.NO_RESULT)


async def _ended(api: Api, supply_id: str, verification_id: str) -> dict[str, Any]:
    """The verification once it has ended; a broken connection is taken up again under the same id."""
    path = f"/v1/operator/supplies/{quote(supply_id, safe='')}:verify"
    body = {"request_id": verification_id, "timeout_s": WAIT_S}
    breaks = 0
    while True:
        try:
            answer = await api.call("POST", path, body=body)
        except Unreachable:
            breaks += 1
            if breaks > RECONNECTS:
                raise
            await asyncio.sleep(RECONNECT_S)
            continue
        if answer["status"] != "running":
            return answer
        breaks = 0


def _show(answer: dict[str, Any]) -> None:
    rows = (
        (
            item["name"],
            item["status"],
            output.money(item["cost"]),
            item["task_id"] or item.get("call_id"),
            "\n".join(item["reasons"]),
        )
        for item in answer["cases"]
    )
    title = f"{answer['supply']}: {answer['status']} at capability version {answer['capability_version']}"
    output.show_rows(title, ("request", "verdict", "cost", "task or call", "what it lacks"), rows, "no requests")
    if answer["status"] == "passed":
        output.console.print("publish the models that wait for it: `pointsman catalog publish MODEL`", highlight=False)
