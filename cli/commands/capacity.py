"""`pointsman capacity`: slots and windows."""

import click

from cli import output
from cli.context import Session, json_option, pass_session


@click.command()
@json_option
@pass_session
def capacity(session: Session, as_json: bool) -> None:
    """Show slots of each Channel and Supply: as configured, open now (health may close some), and in use.

    Requests and tokens are those of the last minute.
    """
    answer = session.do(lambda api: api.get("/v1/operator/capacity"))
    if as_json:
        output.show_json(answer)
        return
    columns = ("id", "slots configured", "slots open now", "in use", "requests, last min", "tokens, last min")
    for title in ("channels", "supplies"):
        rows = (
            (
                item["id"],
                item["configured"] or "no limit",
                "no limit" if item["effective"] is None else item["effective"],
                item["in_use"],
                item["rpm_used"],
                item["tpm_used"],
            )
            for item in answer[title]
        )
        output.show_rows(title.capitalize(), columns, rows, f"no {title}")
    output.console.print(output.count(len(answer["leases"]), "lease"), highlight=False)
