"""`pointsman alerts`: what wants an operator's eye."""

import click

from cli import output
from cli.context import Session, json_option, pass_session


@click.command()
@click.option("--kind", default="", help="Only this kind.")
@json_option
@pass_session
def alerts(session: Session, kind: str, as_json: bool) -> None:
    """List alerts, newest first."""
    query = {"kind": kind} if kind else {}
    answer = session.do(lambda api: api.get("/v1/operator/alerts", **query))
    if as_json:
        output.show_json(answer)
        return
    rows = (
        (item["created_at"], item["severity"], item["kind"], item["subject"], item["message"])
        for item in answer["alerts"]
    )
    output.console.print(output.table("Alerts", ("since", "severity", "kind", "subject", "message"), rows))
