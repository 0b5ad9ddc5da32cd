"""`pointsman alerts`: what wants an operator's eye."""

import shlex
from typing import Any
from urllib.parse import quote, unquote

import click

from cli import output
from cli.api import Api
from cli.context import Session, json_option, pass_session

MOST_LOOKS = 5
"""Commands that are named below the table."""
SHOWN_BY = {
    "/v1/operator/runs/": "run show",
    "/v1/runs/": "run show",
    "/v1/tasks/": "explain",
    "/v1/calls/": "explain",
    "/v1/operator/budgets/": "budget show",
}
"""By the path of the API that an alert links to: the verb that shows the same."""


@click.group(invoke_without_command=True)
@click.option("--kind", default="", help="Only this kind.")
@click.option("--subject", default="", help="Only about this id of a model, supply, channel, task or attempt.")
@click.option("--open/--all", "only_open", default=True, help="Those nobody has acknowledged (default), or all.")
@json_option
@pass_session
@click.pass_context
def alerts(context: click.Context, session: Session, kind: str, subject: str, only_open: bool, as_json: bool) -> None:
    """List open alerts, the worst consequence first; `ack` says that one was seen."""
    if context.invoked_subcommand is None:
        _list(session, kind, subject, only_open, as_json)


def _list(session: Session, kind: str, subject: str, only_open: bool, as_json: bool) -> None:
    filters = {"kind": kind, "subject": subject, "open": "true" if only_open else ""}

    async def read(api: Api) -> tuple[dict[str, Any], list[str]]:
        found = await api.get("/v1/operator/alerts", **{name: value for name, value in filters.items() if value})
        if found["alerts"] or not kind:
            return found, []
        every = await api.get("/v1/operator/alerts", page_size=1000)
        return found, sorted({item["kind"] for item in every["alerts"]})

    answer, kinds = session.do(read)
    if as_json:
        output.show_json(answer)
        return
    said = "open alerts" if only_open else "alerts"
    nothing = f"no {said} of kind {kind!r}; {nameable(kinds)}" if kind else f"no {said}"
    columns = ("since", "severity", "kind", "subject", "times", "seen", "message", "id")
    output.show_rows("Alerts", columns, map(_row, answer["alerts"]), nothing)
    looks = list(dict.fromkeys(look for item in answer["alerts"] if (look := look_with(item.get("link")))))
    for look in looks[:MOST_LOOKS]:
        output.console.print(f"look at it: {look}", highlight=False, markup=False, soft_wrap=True)
    if len(looks) > MOST_LOOKS:
        output.console.print(f"and {len(looks) - MOST_LOOKS} more; --json tells every link", highlight=False)


def look_with(link: str | None) -> str:
    """The command that shows what an alert leads to; "" for what has none."""
    for path, verb in SHOWN_BY.items():
        if link and link.startswith(path):
            return f"pointsman {verb} {shlex.quote(unquote(link.removeprefix(path)))}"
    return ""


def _row(item: dict[str, Any]) -> tuple[object, ...]:
    return (
        output.when(item["created_at"]),
        item["severity"],
        item["kind"],
        item["subject"],
        item["count"],
        output.when(item["acknowledged_at"]) if item["acknowledged_at"] else "",
        _said(item),
        item["id"],
    )


def _said(item: dict[str, Any]) -> str:
    """The message, with what was measured: `… (cost: 1.5 CNY against 1, rising)`."""
    measure = item.get("measure")
    if not measure:
        return str(item["message"])
    value, baseline = f"{measure['value']:.4g} {measure['unit']}", f"{measure['baseline']:.4g}"
    return f"{item['message']} ({measure['figure']}: {value} against {baseline}, {measure['trend']})"


@alerts.command()
@click.argument("alert_ids", nargs=-1, required=True, metavar="ID...")
@json_option
@pass_session
def ack(session: Session, alert_ids: tuple[str, ...], as_json: bool) -> None:
    """Say that the alerts of these ids were seen. What goes on raises a new one; doing it twice is harmless."""

    async def tell(api: Api) -> dict[str, Any]:
        paths = [f"/v1/operator/alerts/{quote(name, safe='')}:acknowledge" for name in alert_ids]
        return {"alerts": [await api.call("POST", path) for path in paths]}

    answer = session.do(tell)
    if as_json:
        output.show_json(answer)
        return
    for item in answer["alerts"]:
        output.console.print(f"seen: {item['kind']} of {item['subject']}", highlight=False, markup=False)


def nameable(kinds: list[str]) -> str:
    """Which kinds there are to ask for."""
    return f"there are alerts of {', '.join(kinds)}" if kinds else "there are none of any other kind either"
