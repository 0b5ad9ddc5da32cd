"""`pointsman alerts`: what wants an operator's eye."""

from typing import Any

import click

from cli import output
from cli.api import Api
from cli.context import Session, json_option, pass_session


@click.command()
@click.option("--kind", default="", help="Only this kind.")
@json_option
@pass_session
def alerts(session: Session, kind: str, as_json: bool) -> None:
    """List alerts, newest first."""

    async def read(api: Api) -> tuple[dict[str, Any], list[str]]:
        found = await api.get("/v1/operator/alerts", **({"kind": kind} if kind else {}))
        if found["alerts"] or not kind:
            return found, []
        every = await api.get("/v1/operator/alerts", page_size=1000)
        return found, sorted({item["kind"] for item in every["alerts"]})

    answer, kinds = session.do(read)
    if as_json:
        output.show_json(answer)
        return
    nothing = f"no alerts of kind {kind!r}; {nameable(kinds)}" if kind else "no alerts"
    rows = (
        (
            output.when(item["created_at"]),
            item["severity"],
            item["kind"],
            item["subject"],
            item["count"],
            item["message"],
        )
        for item in answer["alerts"]
    )
    columns = ("since", "severity", "kind", "subject", "times", "message")
    output.show_rows("Alerts", columns, rows, nothing)


def nameable(kinds: list[str]) -> str:
    """Which kinds there are to ask for."""
    return f"there are alerts of {', '.join(kinds)}" if kinds else "there are none of any other kind either"
